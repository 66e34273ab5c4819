//! `locdiff review`: the page in archive mode, for this machine only.

use std::io::{Write, stdout};
use std::path::PathBuf;

use clap::Args;
use locdiff_server::{LogFormat, Server, Settings, start_logs};

use super::open_library;
use crate::memory;
use crate::serve::stop;

/// Beside that of `locdiff serve`.
const PORT: u16 = 8418;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The library that `locdiff scan` made
    library: PathBuf,
    /// The port; 0 chooses a free port. Only this machine can connect
    #[arg(short, long, default_value_t = PORT)]
    port: u16,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    // An error that names the library, before anything listens.
    drop(open_library(&arguments.library)?);
    let _logs = start_logs(LogFormat::Text, "warn").map_err(anyhow::Error::msg)?;
    memory::give_back_soon();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let settings = Settings { port: arguments.port, ..Settings::default() };
    let ended = runtime.block_on(async {
        let server = Server::bind(settings).await?;
        // The one line that a program which started this one waits for.
        writeln!(stdout(), "http://{}", server.address()?)?;
        stdout().flush()?;
        Ok(server.review(&arguments.library, stop()).await?)
    });
    runtime.shutdown_background();
    ended
}
