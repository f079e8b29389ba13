"""Integrations with other tools. Each module needs the package that it is named after."""
