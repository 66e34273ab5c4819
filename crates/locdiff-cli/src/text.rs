//! What is printed. Names of files, contents and messages of others are shown as they are written, but a terminal obeys nothing of
//! them: text for people is always [`shown_message`]. JSON, CSV and other data are for programs: a pipe or a file gets every byte as
//! it is, and only a terminal gets odd characters as their numbers.

use std::io::{self, Write};

#[cfg(feature = "models")]
use locdiff_sphere::is_odd_character;
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

/// Standard output, for JSON.
#[cfg(feature = "models")]
pub(crate) fn json_stdout() -> Data<io::Stdout> {
    Data::new(io::stdout(), Notation::Json)
}

/// Standard output, for CSV, Markdown and other data that is not JSON.
#[cfg(feature = "models")]
pub(crate) fn data_stdout() -> Data<io::Stdout> {
    Data::new(io::stdout(), Notation::Other)
}

/// The name of a file as a part of a message of one line, however long it is.
#[cfg(feature = "models")]
pub(crate) fn on_one_line(name: &str) -> String {
    escaped(name, is_odd_character, |odd| odd.escape_default().to_string())
}

/// How odd characters are written.
#[cfg(feature = "models")]
#[derive(Clone, Copy)]
enum Notation {
    /// As in a string of JSON: it stays the same JSON.
    Json,
    Other,
}

/// Data. What is written at once is whole characters: this does not belong behind a buffer of bytes.
#[cfg(feature = "models")]
pub(crate) struct Data<W> {
    writer: W,
    /// None: bytes are written as they are.
    escaped_as: Option<Notation>,
}

#[cfg(feature = "models")]
impl<W: Write + io::IsTerminal> Data<W> {
    fn new(writer: W, notation: Notation) -> Data<W> {
        let escaped_as = writer.is_terminal().then_some(notation);
        Data { writer, escaped_as }
    }
}

#[cfg(feature = "models")]
impl<W: Write> Write for Data<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(notation) = self.escaped_as else { return self.writer.write(bytes) };
        // Lines and columns are what tables are made of.
        let is_odd = |character| is_odd_character(character) && !['\n', '\t'].contains(&character);
        let number = |odd: char| match notation {
            Notation::Json => {
                let mut units = [0; 2];
                let units = odd.encode_utf16(&mut units).iter();
                units.map(|unit| format!("\\u{unit:04x}")).collect()
            }
            Notation::Other => odd.escape_unicode().to_string(),
        };
        let text = escaped(&String::from_utf8_lossy(bytes), is_odd, number);
        self.writer.write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(feature = "models")]
fn escaped(text: &str, is_odd: impl Fn(char) -> bool, number: impl Fn(char) -> String) -> String {
    let mut result = String::with_capacity(text.len());
    for character in text.chars() {
        match is_odd(character) {
            true => result.push_str(&number(character)),
            false => result.push(character),
        }
    }
    result
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

    #[cfg(feature = "models")]
    const HOSTILE: &str = "Ü\u{1b}]0;x\u{7}\u{9b}2J\r\u{7f}\u{202e}\u{2066}\u{feff}.jpg";

    #[test]
    #[cfg(feature = "models")]
    fn a_terminal_obeys_nothing_of_data_and_a_pipe_gets_all_of_it() {
        let written = |escaped_as, text: &str| {
            let mut data = Data { writer: Vec::new(), escaped_as };
            writeln!(data, "{text}").expect("room");
            String::from_utf8(data.writer).expect("text")
        };
        let json = serde_json::json!({ "image": HOSTILE, "rank": 1 }).to_string();
        let shown = written(Some(Notation::Json), &json);
        let obeyed = |c: char| is_odd_character(c) && c != '\n';
        assert!(!shown.contains(obeyed) && shown.contains("\\u009b2J"), "{shown}");
        // It is the same JSON.
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(read(&shown), read(&json));
        let row = format!("a\t{HOSTILE}\nb");
        let shown = written(Some(Notation::Other), &row);
        assert!(!shown.contains(|c| obeyed(c) && c != '\t'), "{shown}");
        assert!(shown.starts_with("a\tÜ\\u{1b}]0;x") && shown.ends_with(".jpg\nb\n"), "{shown}");
        assert_eq!(written(None, &row), format!("{row}\n"));
    }

    #[test]
    #[cfg(feature = "models")]
    fn names_stay_on_their_line() {
        assert_eq!(on_one_line("a\nlocdiff: b\r\u{9b}.jpg"), "a\\nlocdiff: b\\r\\u{9b}.jpg");
        assert_eq!(on_one_line("Übersee 乌鲁木齐.jpg"), "Übersee 乌鲁木齐.jpg");
        let long = "x".repeat(3000);
        assert_eq!(on_one_line(&long), long);
    }
}
