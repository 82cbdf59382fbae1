"""Where spans go: OpenTelemetry, which is loaded only where tracing is on."""
