"""Rows of a large capture in little memory."""
