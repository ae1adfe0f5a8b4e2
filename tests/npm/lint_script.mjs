// Reads a script of a page on stdin and prints, as JSON, what ESLint has to say about it; an empty list where that is nothing.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(`${process.cwd()}/`);
const { Linter } = require("eslint");
const js = require("@eslint/js");

const BROWSER = [
  "AbortController", "addEventListener", "atob", "Blob", "clearTimeout", "document", "EventSource", "fetch", "history", "location", "matchMedia", "MutationObserver", "navigator", "performance",
  "ResizeObserver", "setInterval", "setTimeout", "TextEncoder", "URL", "URLSearchParams",
];

const config = [
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2022, sourceType: "script", globals: Object.fromEntries(BROWSER.map((name) => [name, "readonly"])) },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "array-callback-return": "error",
      "consistent-return": "error",
      "curly": ["error", "multi-line"],
      "dot-notation": "error",
      "eqeqeq": "error",
      "no-control-regex": "off", // controls are what `harmless` looks for
      "no-else-return": "error",
      "no-eval": "error",
      "no-implicit-coercion": "error",
      "no-implied-eval": "error",
      "no-misleading-character-class": ["error", { allowEscape: true }],
      "no-new-func": "error",
      "no-param-reassign": "error",
      "no-restricted-properties": ["error",
        { property: "innerHTML", message: "Nothing here takes markup." },
        { property: "outerHTML", message: "Nothing here takes markup." },
        { property: "insertAdjacentHTML", message: "Nothing here takes markup." },
        { object: "document", property: "write", message: "Nothing here takes markup." },
      ],
      "no-return-assign": "error",
      "no-shadow": "error",
      "no-throw-literal": "error",
      "no-unused-expressions": "error",
      "no-use-before-define": ["error", { functions: false, variables: false }],
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-arrow-callback": "error",
      "prefer-const": "error",
      "prefer-template": "error",
      "radix": "error",
      "camelcase": "error",
    },
  },
];

const found = new Linter().verify(readFileSync(0, "utf8"), config, { filename: "page.js" });
console.log(JSON.stringify(found.map((one) => `${one.line}:${one.column} ${one.ruleId}: ${one.message}`)));
