//! Logs on stderr, for people or for machines; traces for OpenTelemetry with the feature `otel`.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

/// How lines of the log look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging. `filter` is a level (`warn`) or what the environment variable `RUST_LOG` takes; it is
/// refused if it makes no sense. What is returned must live as long as the program.
pub fn start_logs(format: LogFormat, filter: &str) -> Result<LogGuard, String> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| format!("the log filter is not valid: {error}"))?;
    let lines = tracing_subscriber::fmt::layer().with_writer(stderr).with_target(false);
    let lines = match format {
        LogFormat::Text => lines.with_ansi(stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let registry = tracing_subscriber::registry().with(lines).with(filter);
    #[cfg(feature = "otel")]
    {
        use opentelemetry::trace::TracerProvider;
        let exporter = opentelemetry_otlp::SpanExporter::builder().with_http().build();
        let exporter =
            exporter.map_err(|error| format!("cannot start OpenTelemetry traces: {error}"))?;
        let provider = opentelemetry_sdk::trace::SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(
                opentelemetry_sdk::Resource::builder().with_service_name("locdiff").build(),
            )
            .build();
        let traces = tracing_opentelemetry::layer().with_tracer(provider.tracer("locdiff"));
        registry.with(traces).try_init().map_err(|error| error.to_string())?;
        Ok(LogGuard { provider })
    }
    #[cfg(not(feature = "otel"))]
    {
        registry.try_init().map_err(|error| error.to_string())?;
        Ok(LogGuard {})
    }
}

/// Sends what is left of the traces when it is dropped.
#[must_use]
#[derive(Debug)]
pub struct LogGuard {
    #[cfg(feature = "otel")]
    provider: opentelemetry_sdk::trace::SdkTracerProvider,
}

#[cfg(feature = "otel")]
impl Drop for LogGuard {
    fn drop(&mut self) {
        let _ = self.provider.shutdown();
    }
}
