//! The `locdiff` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    locdiff_cli::run(std::env::args_os())
}
