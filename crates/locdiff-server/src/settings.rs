//! How a server is to behave. Every number has a default that suits one machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::memory::READ_AHEAD;

/// Settings of a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(default)]
pub struct Settings {
    /// The address it listens at. Loopback: only this machine can ask.
    pub host: IpAddr,
    /// The port; 0: any that is free.
    pub port: u16,
    /// Models that it offers, the one to ask first at the front. None: all that are installed.
    pub models: Vec<String>,
    /// Where models compute: cpu, cuda:N, wgpu or metal, as far as this program was built for them.
    pub device: String,
    /// The image encoder of models that were trained as diffusions, if it is not the installed one: a path.
    pub encoder: Option<PathBuf>,
    /// How often a network may be evaluated for one image: samples times views times steps.
    pub max_evaluations: usize,
    /// Images that are computed together at most.
    pub max_batch: usize,
    /// How long a batch waits for images that are being received just now.
    pub batch_delay_ms: u64,
    /// Batches that are worked on at the same time, so that no core waits for another's last image.
    pub workers: usize,
    /// Images that may wait at most.
    pub max_queue: usize,
    /// How long an image may expect to wait for its answer; if it would be longer, it is refused at once.
    pub max_wait_ms: u64,
    /// CPU time of one core that the work on one density may be expected to take; if it would take more, it is refused.
    pub density_budget_ms: u64,
    /// Images in one request at most.
    pub max_images: usize,
    /// Bytes of one image at most.
    pub max_image_bytes: u64,
    /// Pixels of one image at most.
    pub max_image_pixels: u64,
    /// What all requests together may take in memory: connections, bodies, decoded images, densities and answers.
    pub max_memory_bytes: u64,
    /// Connections at a time at most, and half as many of one address; idle ones are closed for new ones.
    pub max_connections: usize,
    /// How much of the time of processors one client may use while others wait, in percent. 100: clients have no limits of their own.
    pub client_share_percent: u64,
    /// Proxies whose `X-Forwarded-For` states the address of a client.
    #[serde(rename = "trusted_proxy")]
    pub trusted_proxies: Vec<IpAddr>,
    /// Further host names under which requests may call the server. If there are any, or on loopback, other names are rejected.
    #[serde(rename = "allowed_host")]
    pub allowed_hosts: Vec<String>,
    /// How long a client may take for the head of a request, or idle between two.
    pub header_timeout_s: u64,
    /// How long a client may take to send a request's body.
    pub body_timeout_s: u64,
    /// How long a client may take to read an answer.
    pub answer_timeout_s: u64,
    /// How long a request may take in all.
    pub request_timeout_s: u64,
    /// How long accepted requests may take when the server is told to stop.
    pub shutdown_timeout_s: u64,
    /// Tiles for street level on the page: a URL with {z}, {x} and {y}. Without: nothing but the bundled map.
    pub tiles: Option<String>,
    /// Whom to thank for the tiles.
    pub tiles_attribution: Option<String>,
    /// The folder of references whose pictures the page may show. Without: none.
    pub references: Option<PathBuf>,
    /// If any, requests must bring one of them. Never shown.
    #[serde(skip_serializing)]
    pub api_keys: Vec<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 8417,
            models: Vec::new(),
            device: "cpu".to_owned(),
            encoder: None,
            max_evaluations: 4_096,
            max_batch: 4,
            batch_delay_ms: 2,
            workers: 2,
            max_queue: 256,
            max_wait_ms: 1_000,
            density_budget_ms: 2_000,
            max_images: 16,
            max_image_bytes: 32 << 20,
            max_image_pixels: 50_000_000,
            // So much that `Memory::second_bytes` is enough for an image of the most pixels, at six bytes per pixel.
            max_memory_bytes: 768 << 20,
            max_connections: 1_024,
            client_share_percent: 25,
            trusted_proxies: Vec::new(),
            allowed_hosts: Vec::new(),
            header_timeout_s: 15,
            body_timeout_s: 30,
            answer_timeout_s: 30,
            request_timeout_s: 120,
            shutdown_timeout_s: 30,
            tiles: None,
            tiles_attribution: None,
            references: None,
            api_keys: Vec::new(),
        }
    }
}

/// A setting that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {reason}")]
pub struct InvalidSetting {
    /// Name of the setting, as on the command line.
    pub setting: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

impl Settings {
    /// The address to listen at.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.host, self.port)
    }

    /// Refuses what makes no sense.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        let at_least_one = [
            ("max_evaluations", self.max_evaluations as u64),
            ("max_batch", self.max_batch as u64),
            ("workers", self.workers as u64),
            ("max_queue", self.max_queue as u64),
            ("density_budget_ms", self.density_budget_ms),
            ("max_images", self.max_images as u64),
            ("max_image_bytes", self.max_image_bytes),
            ("max_image_pixels", self.max_image_pixels),
            ("max_connections", self.max_connections as u64),
            ("client_share_percent", self.client_share_percent),
            ("header_timeout_s", self.header_timeout_s),
            ("body_timeout_s", self.body_timeout_s),
            ("answer_timeout_s", self.answer_timeout_s),
            ("request_timeout_s", self.request_timeout_s),
        ];
        for (setting, value) in at_least_one {
            if value == 0 {
                let reason = "must be at least 1".to_owned();
                return Err(InvalidSetting { setting, reason });
            }
        }
        // A body that grows is there twice for a moment.
        if self.client_memory() < self.max_image_bytes.saturating_mul(2) {
            // A third is for requests, and of that a half for one client.
            let times = if self.client_share().is_some() { 12 } else { 6 };
            let least = self
                .connection_memory()
                .saturating_add(self.max_image_bytes.saturating_mul(times).saturating_add(24));
            let reason = format!(
                "{} is too little for max_connections {} and max_image_bytes {}: use at least {least}",
                self.max_memory_bytes, self.max_connections, self.max_image_bytes
            );
            return Err(InvalidSetting { setting: "max_memory_bytes", reason });
        }
        let is_name = |host: &String| {
            let name: Option<axum::http::uri::Authority> = host.parse().ok();
            name.is_some_and(|name| name.host() == host)
        };
        if let Some(wrong) = self.allowed_hosts.iter().find(|host| !is_name(host)) {
            let reason = format!("`{wrong}` is not a host name: give it without scheme and port");
            return Err(InvalidSetting { setting: "allowed_host", reason });
        }
        if self.client_share_percent > 100 {
            let reason = "is a share in percent: use at most 100".to_owned();
            return Err(InvalidSetting { setting: "client_share_percent", reason });
        }
        if let Some(folder) = &self.references
            && !folder.is_dir()
        {
            let reason = format!("{} is not a folder", folder.display());
            return Err(InvalidSetting { setting: "references", reason });
        }
        if let Some(tiles) = &self.tiles
            && self.tiles_origin().is_none()
        {
            let reason = format!(
                "`{tiles}` is not a URL such as https://tiles.example.org/{{z}}/{{x}}/{{y}}.png"
            );
            return Err(InvalidSetting { setting: "tiles", reason });
        }
        Ok(())
    }

    /// Scheme and host of the tiles: where the page may go for them.
    pub(crate) fn tiles_origin(&self) -> Option<String> {
        let tiles = self.tiles.as_deref()?;
        let scheme =
            ["https://", "http://"].into_iter().find(|scheme| tiles.starts_with(scheme))?;
        let host = tiles[scheme.len()..].split('/').next()?;
        // Nothing that could add to the policy that this becomes a part of.
        let plain = |c: char| c.is_ascii_alphanumeric() || "-.:[]".contains(c);
        let complete = ["{z}", "{x}", "{y}"].iter().all(|part| tiles.contains(part));
        (complete && !host.is_empty() && host.chars().all(plain)).then(|| format!("{scheme}{host}"))
    }

    /// Of `max_memory_bytes`, what connections may take before they have sent the head of a request.
    fn connection_memory(&self) -> u64 {
        (self.max_connections as u64).saturating_mul(READ_AHEAD as u64)
    }

    /// Of the rest, what is received and answered may take.
    pub(crate) fn request_memory(&self) -> u64 {
        self.max_memory_bytes.saturating_sub(self.connection_memory()) / 3
    }

    /// Of that, what one client may take: as much is left, in which another can send an image of the largest size.
    pub(crate) fn client_memory(&self) -> u64 {
        match self.client_share() {
            None => self.request_memory(),
            Some(_) => self.request_memory() / 2,
        }
    }

    /// The share of one client, if it is less than all.
    pub(crate) fn client_share(&self) -> Option<f64> {
        (self.client_share_percent < 100).then_some(self.client_share_percent as f64 / 100.0)
    }

    /// And work: images that are decoded, densities that are drawn.
    pub(crate) fn work_memory(&self) -> u64 {
        2 * self.request_memory()
    }

    pub(crate) fn body_timeout(&self) -> Duration {
        Duration::from_secs(self.body_timeout_s)
    }

    pub(crate) fn density_budget(&self) -> Duration {
        Duration::from_millis(self.density_budget_ms)
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        Duration::from_secs(self.request_timeout_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_make_sense_and_stay_on_this_machine() {
        let settings = Settings::default();
        assert_eq!(settings.check(), Ok(()));
        assert!(settings.host.is_loopback());
    }

    #[test]
    fn nonsense_is_named() {
        let wrong = Settings { workers: 0, ..Settings::default() };
        assert_eq!(wrong.check().expect_err("no workers").setting, "workers");
        let wrong = Settings { max_memory_bytes: 1, ..Settings::default() };
        assert_eq!(wrong.check().expect_err("no memory").setting, "max_memory_bytes");
        // What the message asks for is enough, and less is not.
        for client_share_percent in [50, 100] {
            let wrong = Settings { client_share_percent, ..wrong.clone() };
            let reason = wrong.check().expect_err("no memory").reason;
            let least = reason.rsplit(' ').next().and_then(|least| least.parse::<u64>().ok());
            let least = least.expect("a number");
            let right = Settings { max_memory_bytes: least, ..wrong };
            assert_eq!(right.check(), Ok(()));
            let wrong = Settings { max_memory_bytes: least - 100, ..right };
            assert!(wrong.check().is_err());
        }
    }

    #[test]
    fn one_client_leaves_memory_for_an_image_of_another() {
        let image = Settings::default().max_image_bytes;
        let memory = Settings::default().connection_memory() + 12 * image + 24;
        let settings = Settings { max_memory_bytes: memory, ..Settings::default() };
        assert_eq!(settings.check(), Ok(()));
        assert!(settings.request_memory() - settings.client_memory() >= 2 * image);
    }

    #[test]
    fn tiles_can_only_add_one_host_to_the_policy() {
        let origin = |tiles: &str| {
            Settings { tiles: Some(tiles.to_owned()), ..Settings::default() }.tiles_origin()
        };
        let good = "https://tiles.example.org:8080/a/{z}/{x}/{y}.png";
        assert_eq!(origin(good).as_deref(), Some("https://tiles.example.org:8080"));
        for bad in
            ["https://a; script-src */{z}/{x}/{y}", "ftp://a/{z}/{x}/{y}", "https://a/{z}/{x}", ""]
        {
            assert_eq!(origin(bad), None, "{bad}");
        }
    }

    #[test]
    fn keys_are_never_shown() {
        let settings = Settings { api_keys: vec!["secret".to_owned()], ..Settings::default() };
        assert!(!serde_json::to_string(&settings).expect("plain").contains("secret"));
    }
}
