//! `locdiff serve`: the models of this machine over HTTP, and the map page.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io::{Write, stdout};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::parser::ValueSource;
use clap::{Args, ValueEnum};
use locdiff_server::{LogFormat, Server, Settings, start_logs};
use serde::Serialize;

use crate::progress::Waiting;
use crate::{NO_MODEL, NONSENSE, memory, refused};

/// Every option is also an environment variable, so that containers need no command line.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Read settings from a TOML file, as --print-config writes it. The command line and the environment override it
    #[arg(long, env = "LOCDIFF_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// The address or host name to listen on. By default only this machine can connect; 0.0.0.0 lets others connect
    #[arg(long, env = "LOCDIFF_HOST", default_value = "127.0.0.1")]
    host: String,
    /// The port; 0 chooses a free port
    #[arg(short, long, env = "LOCDIFF_PORT", default_value_t = Settings::default().port)]
    port: u16,
    /// Models to serve, names or directories, the default model first [default: earth-view, and GeoCLIP and models of plonk if
    /// they are installed]
    #[arg(short, long, env = "LOCDIFF_MODELS", value_name = "NAME", value_delimiter = ',')]
    model: Vec<String>,
    /// Device to compute on: cpu, cuda:N, wgpu or metal, if this program was built with it
    #[arg(long, env = "LOCDIFF_DEVICE", default_value = "cpu")]
    device: String,
    /// The image encoder of models that `locdiff train` made, if it is not an installed one: a directory or a name
    #[arg(long, env = "LOCDIFF_ENCODER", value_name = "PATH")]
    encoder: Option<PathBuf>,
    /// Most evaluations of the network for one image: samples times views times steps
    #[arg(long, env = "LOCDIFF_MAX_EVALUATIONS", value_name = "N", default_value_t = Settings::default().max_evaluations)]
    max_evaluations: usize,
    /// Largest batch, in images
    #[arg(long, env = "LOCDIFF_MAX_BATCH", value_name = "N", default_value_t = Settings::default().max_batch)]
    max_batch: usize,
    /// How long a batch waits for images that are just being received
    #[arg(long, env = "LOCDIFF_BATCH_DELAY_MS", value_name = "MS", default_value_t = Settings::default().batch_delay_ms)]
    batch_delay_ms: u64,
    /// Batches that are computed at the same time
    #[arg(long, env = "LOCDIFF_WORKERS", value_name = "N", default_value_t = Settings::default().workers)]
    workers: usize,
    /// Largest length of the queue, in images
    #[arg(long, env = "LOCDIFF_MAX_QUEUE", value_name = "N", default_value_t = Settings::default().max_queue)]
    max_queue: usize,
    /// A request that would wait longer is rejected at once
    #[arg(long, env = "LOCDIFF_MAX_WAIT_MS", value_name = "MS", default_value_t = Settings::default().max_wait_ms)]
    max_wait_ms: u64,
    /// Largest expected CPU time for one density; a request above it is rejected at once
    #[arg(long, env = "LOCDIFF_DENSITY_BUDGET_MS", value_name = "MS", default_value_t = Settings::default().density_budget_ms)]
    density_budget_ms: u64,
    /// Largest number of images in one request
    #[arg(long, env = "LOCDIFF_MAX_IMAGES", value_name = "N", default_value_t = Settings::default().max_images)]
    max_images: usize,
    /// Largest image, in bytes
    #[arg(long, env = "LOCDIFF_MAX_IMAGE_BYTES", value_name = "N", default_value_t = Settings::default().max_image_bytes)]
    max_image_bytes: u64,
    /// Largest image, in pixels
    #[arg(long, env = "LOCDIFF_MAX_IMAGE_PIXELS", value_name = "N", default_value_t = Settings::default().max_image_pixels)]
    max_image_pixels: u64,
    /// Most memory for all requests together, in bytes: connections, bodies, decoded images, densities and answers
    #[arg(long, env = "LOCDIFF_MAX_MEMORY_BYTES", value_name = "N", default_value_t = Settings::default().max_memory_bytes)]
    max_memory_bytes: u64,
    /// Largest number of connections at a time, and half as many from one address
    #[arg(long, env = "LOCDIFF_MAX_CONNECTIONS", value_name = "N", default_value_t = Settings::default().max_connections)]
    max_connections: usize,
    /// Largest share of the processors' time for one client while others wait, in percent; 100 sets no limit. A client is an API
    /// key, or else an address
    #[arg(long, env = "LOCDIFF_CLIENT_SHARE_PERCENT", value_name = "N", default_value_t = Settings::default().client_share_percent)]
    client_share_percent: u64,
    /// The address of a proxy: its header X-Forwarded-For states the addresses of clients
    #[arg(long, env = "LOCDIFF_TRUSTED_PROXY", value_name = "ADDRESS", value_delimiter = ',')]
    trusted_proxy: Vec<IpAddr>,
    /// A host name under which the server may be called, besides localhost and its address; if it is given, or if the server listens
    /// on this machine only, requests with other names are rejected
    #[arg(long, env = "LOCDIFF_ALLOWED_HOST", value_name = "NAME", value_delimiter = ',')]
    allowed_host: Vec<String>,
    /// How long a client may take for the head of a request, or idle between two
    #[arg(long, env = "LOCDIFF_HEADER_TIMEOUT_S", value_name = "S", default_value_t = Settings::default().header_timeout_s)]
    header_timeout_s: u64,
    /// How long a client may take to send a body
    #[arg(long, env = "LOCDIFF_BODY_TIMEOUT_S", value_name = "S", default_value_t = Settings::default().body_timeout_s)]
    body_timeout_s: u64,
    /// How long a client may take to read an answer
    #[arg(long, env = "LOCDIFF_ANSWER_TIMEOUT_S", value_name = "S", default_value_t = Settings::default().answer_timeout_s)]
    answer_timeout_s: u64,
    /// How long a request may take in all
    #[arg(long, env = "LOCDIFF_REQUEST_TIMEOUT_S", value_name = "S", default_value_t = Settings::default().request_timeout_s)]
    request_timeout_s: u64,
    /// How long accepted requests may still take after the server was told to stop
    #[arg(long, env = "LOCDIFF_SHUTDOWN_TIMEOUT_S", value_name = "S", default_value_t = Settings::default().shutdown_timeout_s)]
    shutdown_timeout_s: u64,
    /// Tiles for street level on the page, a URL with {z}, {x} and {y}; without it, the page uses this server only
    #[arg(long, env = "LOCDIFF_TILES", value_name = "URL")]
    tiles: Option<String>,
    /// Attribution of the tiles, shown on the page
    #[arg(long, env = "LOCDIFF_TILES_ATTRIBUTION", value_name = "TEXT")]
    tiles_attribution: Option<String>,
    /// The folder of a gallery's photographs, for thumbnails on the page: everybody who can use the server can see them
    #[arg(long, env = "LOCDIFF_REFERENCES", value_name = "FOLDER")]
    references: Option<PathBuf>,
    /// A file of API keys, one per line: every request must send one of them
    #[arg(long, env = "LOCDIFF_API_KEY_FILE", value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// Format of the log, on stderr
    #[arg(long, env = "LOCDIFF_LOG_FORMAT", value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    log_format: Format,
    /// What is logged: error, warn, info, debug, or a filter as in RUST_LOG
    #[arg(long, env = "LOCDIFF_LOG", value_name = "FILTER", default_value = "info")]
    log: String,
    /// Print the settings as TOML, and exit
    #[arg(long)]
    print_config: bool,
    /// With --print-config: print JSON instead of TOML
    #[arg(long, requires = "print_config")]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// Lines of text.
    Text,
    /// One JSON object per line.
    Json,
}

/// What `--print-config` prints: all that a command line can state.
#[derive(Serialize)]
struct Printed<'a> {
    host: &'a str,
    #[serde(flatten)]
    settings: serde_json::Map<String, serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key_file: Option<&'a PathBuf>,
    log_format: Format,
    log: &'a str,
}

/// A command line of `locdiff serve --config FILE` with the settings of the file that it does not override.
pub(crate) fn with_config(
    mut arguments: Vec<OsString>,
    command: clap::Command,
) -> anyhow::Result<Vec<OsString>> {
    let serve = command.find_subcommand("serve").expect("the command exists");
    let known: HashSet<String> =
        serve.get_arguments().map(|argument| argument.get_id().to_string()).collect();
    // What can't be parsed is reported by the second, complete parse.
    let Ok(matches) = command.try_get_matches_from(&arguments) else { return Ok(arguments) };
    let Some(serve) = matches.subcommand_matches("serve") else { return Ok(arguments) };
    let Some(path) = serve.get_one::<PathBuf>("config") else { return Ok(arguments) };
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let table: toml::Table = text.parse().with_context(|| format!("{shown} is not TOML"))?;
    for (key, value) in table {
        let id = if key == "models" { "model" } else { key.as_str() };
        let is_setting = known.contains(id) && !["config", "print_config", "json"].contains(&id);
        anyhow::ensure!(is_setting, "{shown}: there is no setting `{key}`");
        let source = serve.value_source(id);
        if matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable)) {
            continue;
        }
        let text = |value: &toml::Value| match value {
            toml::Value::String(text) => Some(text.clone()),
            toml::Value::Integer(number) => Some(number.to_string()),
            _ => None,
        };
        let value = match &value {
            toml::Value::Array(items) => {
                items.iter().map(text).collect::<Option<Vec<_>>>().map(|i| i.join(","))
            }
            value => text(value),
        };
        let value = value.with_context(|| {
            format!("{shown}: `{key}` must be a number, a text or a list of texts")
        })?;
        if !value.is_empty() {
            arguments.push(format!("--{}={value}", id.replace('_', "-")).into());
        }
    }
    Ok(arguments)
}

impl Arguments {
    /// The address of the host, which may be a name.
    fn address(&self) -> anyhow::Result<IpAddr> {
        if let Ok(address) = self.host.parse() {
            return Ok(address);
        }
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found = found.with_context(|| format!("--host {}: no such host", self.host))?.next();
        Ok(found.with_context(|| format!("--host {} has no address", self.host))?.ip())
    }

    fn printed(&self, settings: &Settings) -> anyhow::Result<String> {
        let serde_json::Value::Object(mut all) = serde_json::to_value(settings)? else {
            anyhow::bail!("settings are a table");
        };
        all.retain(|key, value| key != "host" && (self.json || !value.is_null()));
        let printed = Printed {
            host: &self.host,
            settings: all,
            api_key_file: self.api_key_file.as_ref(),
            log_format: self.log_format,
            log: &self.log,
        };
        Ok(match self.json {
            true => serde_json::to_string_pretty(&printed)? + "\n",
            false => toml::to_string(&printed)?,
        })
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        Ok(Settings {
            host: self.address()?,
            port: self.port,
            models: self.model.clone(),
            device: self.device.clone(),
            encoder: self.encoder.clone(),
            max_evaluations: self.max_evaluations,
            max_batch: self.max_batch,
            batch_delay_ms: self.batch_delay_ms,
            workers: self.workers,
            max_queue: self.max_queue,
            max_wait_ms: self.max_wait_ms,
            density_budget_ms: self.density_budget_ms,
            max_images: self.max_images,
            max_image_bytes: self.max_image_bytes,
            max_image_pixels: self.max_image_pixels,
            max_memory_bytes: self.max_memory_bytes,
            max_connections: self.max_connections,
            client_share_percent: self.client_share_percent,
            trusted_proxies: self.trusted_proxy.clone(),
            allowed_hosts: self.allowed_host.clone(),
            header_timeout_s: self.header_timeout_s,
            body_timeout_s: self.body_timeout_s,
            answer_timeout_s: self.answer_timeout_s,
            request_timeout_s: self.request_timeout_s,
            shutdown_timeout_s: self.shutdown_timeout_s,
            tiles: self.tiles.clone(),
            tiles_attribution: self.tiles_attribution.clone(),
            references: self.references.clone(),
            api_keys: self.keys()?,
        })
    }

    fn keys(&self) -> anyhow::Result<Vec<String>> {
        let Some(path) = &self.api_key_file else { return Ok(Vec::new()) };
        let text = fs::read_to_string(path)
            .with_context(|| format!("cannot read the keys in {}", path.display()))?;
        let lines = text.lines().map(str::trim);
        let keys: Vec<String> = lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(str::to_owned)
            .collect();
        // A file that was meant to close the server must not leave it open.
        anyhow::ensure!(
            !keys.is_empty(),
            "{} contains no key: write one key per line",
            path.display()
        );
        Ok(keys)
    }
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let settings = arguments.settings()?;
    if let Err(error) = settings.check() {
        return Ok(refused(&error.to_string(), NONSENSE));
    }
    if arguments.print_config {
        stdout().write_all(arguments.printed(&settings)?.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let format = match arguments.log_format {
        Format::Text => LogFormat::Text,
        Format::Json => LogFormat::Json,
    };
    let _logs = match start_logs(format, &arguments.log) {
        Ok(guard) => guard,
        Err(reason) => return Ok(refused(&reason, NONSENSE)),
    };
    memory::give_back_soon();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(serve(settings));
    // Work whose client has gone must not keep the process alive.
    runtime.shutdown_background();
    ended
}

async fn serve(settings: Settings) -> anyhow::Result<ExitCode> {
    let open_to_all = !settings.host.is_loopback() && settings.api_keys.is_empty();
    let server = Server::bind(settings).await?;
    let address = server.address()?;
    if open_to_all {
        tracing::warn!(
            "everybody who can reach {address} can use this server; require a key with --api-key-file"
        );
    }
    let waiting = Waiting::new("opening models");
    let ready = move || {
        drop(waiting);
        // The one line that a program which started this one waits for.
        let _ = writeln!(stdout(), "http://{address}").and_then(|()| stdout().flush());
    };
    match server.run(ready, stop()).await {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(locdiff_server::ServeError::Model(error @ locdiff::CannotOpen::Missing { .. })) => {
            Ok(refused(&error.to_string(), NO_MODEL))
        }
        Err(locdiff_server::ServeError::Model(
            error @ (locdiff::CannotOpen::Unknown(_) | locdiff::CannotOpen::Device(_)),
        )) => Ok(refused(&error.to_string(), NONSENSE)),
        Err(error) => Err(error.into()),
    }
}

/// Completes at SIGINT or SIGTERM.
pub(crate) async fn stop() {
    stop_signal().await;
    // A second signal ends the process at once.
    tokio::spawn(async {
        stop_signal().await;
        std::process::exit(1);
    });
}

/// Ctrl-C, or what systemd, Docker and Kubernetes send.
async fn stop_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
