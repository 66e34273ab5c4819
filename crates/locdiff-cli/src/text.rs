//! Text for people. Names of files, contents and messages of others are shown as they are written, but a terminal obeys nothing of
//! them: see [`shown_message`]. JSON, CSV and other data don't come this way.

use std::io::{self, Write};

use locdiff_sphere::shown_message;

/// Standard error, for text.
pub(crate) fn stderr() -> Text<io::Stderr> {
    Text(io::stderr())
}

/// Standard output, for text.
#[cfg(feature = "models")]
pub(crate) fn stdout() -> Text<io::Stdout> {
    Text(io::stdout())
}

/// What is written with one `write!` is one message.
pub(crate) struct Text<W>(W);

impl<W: Write> Write for Text<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(shown_message(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn write_fmt(&mut self, message: std::fmt::Arguments<'_>) -> io::Result<()> {
        let text = message.to_string();
        let line_ends = text.ends_with('\n');
        let shown = shown_message(text.strip_suffix('\n').unwrap_or(&text));
        self.0.write_all(shown.as_bytes())?;
        if line_ends { self.0.write_all(b"\n") } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_of_a_name() {
        let mut written = Text(Vec::new());
        let name = "a\u{1b}]0;x\u{7}\u{9b}2J\r.jpg";
        writeln!(written, "locdiff: {name}: not an image").expect("room");
        write!(written, "{}\n{}", "Ü".repeat(9), "x".repeat(5 << 20)).expect("room");
        let text = String::from_utf8(written.0).expect("text");
        let odd = text.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(odd, None, "{text}");
        assert!(text.starts_with("locdiff: a\\u{1b}]0;x\\u{7}"), "{text}");
        assert!(text.contains(".jpg: not an image\nÜÜ") && text.len() < 10_000, "{}", text.len());
    }
}
