//! Counters for Prometheus. Each server has its own: nothing is global.

use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder, Unit};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};

const METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// What is counted.
pub(crate) struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    pub(crate) wait_s: Histogram,
    pub(crate) batch_s: Histogram,
    pub(crate) batch_images: Histogram,
    pub(crate) abandoned: Counter,
    pub(crate) connections: Gauge,
    pub(crate) connections_rejected: Counter,
    pub(crate) waiting: Gauge,
}

impl Metrics {
    pub(crate) fn new() -> Result<Metrics, BuildError> {
        let seconds = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
        let images = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &seconds)?
            .set_buckets_for_metric(Matcher::Suffix("_images".to_owned()), &images)?
            .build_recorder();
        let describe = |name: &'static str, unit, text: &'static str| {
            recorder.describe_histogram(name.into(), unit, text.into());
        };
        describe("locdiff_wait_seconds", Some(Unit::Seconds), "Time in the queue.");
        describe("locdiff_batch_seconds", Some(Unit::Seconds), "Time of a batch.");
        describe("locdiff_batch_images", None, "Images in a batch.");
        describe("locdiff_request_seconds", Some(Unit::Seconds), "Time of a request.");
        let text = "Requests by path and status.";
        recorder.describe_counter("locdiff_requests_total".into(), None, text.into());
        let text = "Images whose client disconnected before they were computed.";
        recorder.describe_counter("locdiff_abandoned_total".into(), None, text.into());
        let text = "Connections of addresses that had too many.";
        recorder.describe_counter("locdiff_connections_rejected_total".into(), None, text.into());
        recorder.describe_gauge("locdiff_connections".into(), None, "Open connections.".into());
        recorder.describe_gauge(
            "locdiff_waiting_images".into(),
            None,
            "Images in the queue.".into(),
        );
        let histogram = |name| recorder.register_histogram(&Key::from_static_name(name), &METADATA);
        let gauge = |name| recorder.register_gauge(&Key::from_static_name(name), &METADATA);
        let counter = |name| recorder.register_counter(&Key::from_static_name(name), &METADATA);
        Ok(Metrics {
            wait_s: histogram("locdiff_wait_seconds"),
            batch_s: histogram("locdiff_batch_seconds"),
            batch_images: histogram("locdiff_batch_images"),
            abandoned: counter("locdiff_abandoned_total"),
            connections_rejected: counter("locdiff_connections_rejected_total"),
            connections: gauge("locdiff_connections"),
            waiting: gauge("locdiff_waiting_images"),
            handle: recorder.handle(),
            recorder,
        })
    }

    /// Counts a request that was answered.
    pub(crate) fn answered(&self, path: &'static str, status: u16, seconds: f64) {
        let labels = vec![Label::new("path", path), Label::new("status", status.to_string())];
        let key = Key::from_parts("locdiff_requests_total", labels);
        self.recorder.register_counter(&key, &METADATA).increment(1);
        let key = Key::from_parts("locdiff_request_seconds", vec![Label::new("path", path)]);
        self.recorder.register_histogram(&key, &METADATA).record(seconds);
    }

    /// Folds samples into their histograms.
    pub(crate) fn tidy(&self) {
        self.handle.run_upkeep();
    }

    /// All of it, as Prometheus reads it.
    pub(crate) fn text(&self) -> String {
        self.handle.run_upkeep();
        self.handle.render()
    }
}
