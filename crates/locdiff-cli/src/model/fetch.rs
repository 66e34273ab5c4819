//! `locdiff model fetch`: weights from the Hugging Face hub, because somebody asked for them.

use std::io::{Write, stderr, stdout};

use clap::Args;
use locdiff::hub::{Encoder, Hub};
use serde_json::json;

use crate::progress;

#[derive(Args)]
pub(crate) struct Arguments {
    /// An encoder: clip-vit-b-32, clip-vit-b-16, clip-vit-l-14, clip-vit-l-14-336, streetclip,
    /// dinov2-{s,b,l}-14, dinov2-{s,b,l}-14-reg, or any `owner/name` on the hub; `@revision`
    /// pins a commit
    name: Encoder,
    /// Say on stdout, as JSON, what was fetched
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(Arguments { name: encoder, json }: Arguments) -> anyhow::Result<()> {
    let hub = Hub::from_env()?;
    if let Some(licence) = encoder.licence() {
        writeln!(stderr(), "{encoder}: licence {licence}")?;
    }
    let bar = progress::bytes();
    let fetched = hub.fetch(&encoder, &mut |progress| {
        bar.set_length(progress.total_bytes);
        bar.set_position(progress.bytes);
        bar.set_message(progress.file.to_owned());
    });
    bar.finish_and_clear();
    let fetched = fetched?;
    writeln!(stderr(), "{encoder} is in {}", fetched.directory.display())?;
    if json {
        let files: Vec<_> = fetched
            .files
            .iter()
            .map(|file| json!({ "name": file.name, "bytes": file.size_bytes, "sha256": file.sha256 }))
            .collect();
        let answer = json!({
            "encoder": encoder.to_string(),
            "directory": fetched.directory,
            "revision": fetched.revision,
            "files": files,
        });
        writeln!(stdout(), "{answer}")?;
    }
    Ok(())
}
