//! Where traces go. Off unless an address is given; the names are those of OpenTelemetry's own specification.

#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Traces")]
pub struct Traces {
    /// Address of an OpenTelemetry collector that takes OTLP over HTTP; off when absent.
    ///
    /// Traces go to its `/v1/traces`.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub otel_exporter_otlp_endpoint: Option<String>,
    /// Headers for the collector, as `name=value,name=value`.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_HEADERS", hide_env_values = true)]
    pub otel_exporter_otlp_headers: Option<String>,
    /// What this gateway is called in traces.
    #[arg(long, env = "OTEL_SERVICE_NAME", default_value = "portcullis")]
    pub otel_service_name: String,
}
