// An MCP server in one file, as tutorials have it: `java Demo.java` compiles and runs it. It tells its log, in Chinese, every message
// that it reads and writes. It reads JSON by regular expressions, which is enough for the clients of the tests.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.LocalTime;
import java.time.format.DateTimeFormatter;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Demo {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final PrintStream LOG = new PrintStream(System.err, true, StandardCharsets.UTF_8);
    private static final DateTimeFormatter CLOCK = DateTimeFormatter.ofPattern("HH:mm:ss.SSS");
    private static final Pattern ID = Pattern.compile("\"id\"\\s*:\\s*(\\d+|\"[^\"]*\")");
    private static final Pattern METHOD = Pattern.compile("\"method\"\\s*:\\s*\"([^\"]+)\"");
    private static final Pattern CITY = Pattern.compile("\"city\"\\s*:\\s*\"([^\"]*)\"");

    public static void main(String[] arguments) throws IOException {
        log("INFO ", "=== MCP Demo Server 启动 ===");
        log("INFO ", "已注册工具: weather");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            log("DEBUG", "收到请求: " + line);
            String id = found(ID, line);
            if (id != null) {
                String answer = "{\"jsonrpc\":\"2.0\",\"id\":" + id + "," + said(found(METHOD, line), line) + "}";
                log("DEBUG", "发送响应: " + answer);
                OUT.print(answer + "\n");
                OUT.flush();
            }
        }
        log("INFO ", "标准输入已关闭,服务器停止");
    }

    private static String said(String method, String line) {
        switch (method == null ? "" : method) {
            case "initialize":
                return "\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},"
                    + "\"serverInfo\":{\"name\":\"mcp-demo-server\",\"version\":\"1.0.0\"}}";
            case "ping":
                return "\"result\":{}";
            case "tools/list":
                return "\"result\":{\"tools\":[{\"name\":\"weather\",\"description\":\"查询指定城市的天气信息(模拟数据)\","
                    + "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}},\"required\":[\"city\"]}}]}";
            case "tools/call":
                return "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"城市: " + found(CITY, line) + "\\n天气: 小雨\"}]}";
            default:
                return "\"error\":{\"code\":-32601,\"message\":\"方法不存在\"}";
        }
    }

    private static String found(Pattern pattern, String line) {
        Matcher matcher = pattern.matcher(line);
        return matcher.find() ? matcher.group(1) : null;
    }

    private static void log(String level, String words) {
        LOG.println(LocalTime.now().format(CLOCK) + " [main] " + level + " c.e.mcp.server.McpServer - " + words);
    }
}
