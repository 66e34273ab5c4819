//! Where the hub is and where its files are kept: what Python's `huggingface_hub` reads from the
//! environment, read in the same way, so that both share one cache.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::error::HubError;

/// How to reach the hub, and where to keep what comes from it.
#[derive(Clone)]
pub struct HubSettings {
    /// The directory that holds `models--owner--name`.
    pub cache: PathBuf,
    /// Where the hub is, such as a mirror; `None` for the public one.
    pub endpoint: Option<String>,
    /// For models that are private or whose terms must be accepted.
    pub token: Option<String>,
    /// Never to touch the network.
    pub offline: bool,
    /// How often to try before giving up. A download that gets further starts counting anew.
    pub attempts: u32,
    /// How long to wait before trying a second time; it doubles with each further time.
    pub pause: Duration,
    /// How long a server may send nothing before the connection counts as broken.
    pub silence: Duration,
}

impl HubSettings {
    /// The public hub, without a token, with files kept in a directory.
    pub fn new(cache: PathBuf) -> HubSettings {
        HubSettings {
            cache,
            endpoint: None,
            token: None,
            offline: false,
            attempts: 4,
            pause: Duration::from_secs(1),
            silence: Duration::from_secs(30),
        }
    }

    /// Settings of the environment: `HF_HOME` (or `XDG_CACHE_HOME`), `HF_HUB_CACHE`, `HF_ENDPOINT`,
    /// `HF_TOKEN`, `HF_TOKEN_PATH` (or the file `token` under `HF_HOME`) and `HF_HUB_OFFLINE`.
    pub fn from_env() -> Result<HubSettings, HubError> {
        HubSettings::from_variables(|name| std::env::var_os(name), std::env::home_dir())
    }

    fn from_variables(
        variable: impl Fn(&str) -> Option<OsString>,
        user_home: Option<PathBuf>,
    ) -> Result<HubSettings, HubError> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let path = |name: &str| variable(name).map(PathBuf::from);
        let text = |name: &str| {
            let value = variable(name)?.to_string_lossy().trim().to_owned();
            Some(value).filter(|value| !value.is_empty())
        };

        let home = path("HF_HOME")
            .or_else(|| path("XDG_CACHE_HOME").map(|cache| cache.join("huggingface")))
            .or_else(|| user_home.map(|home| home.join(".cache").join("huggingface")));
        // Each can be named by itself, and then needs no home.
        let cache = path("HF_HUB_CACHE")
            .or_else(|| home.as_ref().map(|home| home.join("hub")))
            .ok_or(HubError::NoHome)?;
        let token_path =
            path("HF_TOKEN_PATH").or_else(|| home.as_ref().map(|home| home.join("token")));
        let token_file = || {
            let token = fs::read_to_string(token_path?).ok()?.trim().to_owned();
            Some(token).filter(|token| !token.is_empty())
        };
        Ok(HubSettings {
            endpoint: text("HF_ENDPOINT"),
            token: text("HF_TOKEN").or_else(token_file),
            offline: text("HF_HUB_OFFLINE").is_some_and(|value| is_true(&value)),
            ..HubSettings::new(cache)
        })
    }
}

/// The values that Python's `huggingface_hub` takes for yes.
fn is_true(value: &str) -> bool {
    ["1", "true", "yes", "on"].iter().any(|yes| value.eq_ignore_ascii_case(yes))
}

impl fmt::Debug for HubSettings {
    /// Without the token, which must not end up in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubSettings")
            .field("cache", &self.cache)
            .field("endpoint", &self.endpoint)
            .field("token", &self.token.as_ref().map(|_| "…"))
            .field("offline", &self.offline)
            .field("attempts", &self.attempts)
            .field("pause", &self.pause)
            .field("silence", &self.silence)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> HubSettings {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        };
        HubSettings::from_variables(variable, Some("/home/me".into())).unwrap()
    }

    #[test]
    fn the_cache_is_where_python_keeps_it() {
        let cache = |variables: &[(&str, &str)]| settings(variables).cache;
        assert_eq!(cache(&[]), PathBuf::from("/home/me/.cache/huggingface/hub"));
        let xdg = ("XDG_CACHE_HOME", "/x");
        assert_eq!(cache(&[xdg]), PathBuf::from("/x/huggingface/hub"));
        assert_eq!(cache(&[xdg, ("HF_HOME", "/hf")]), PathBuf::from("/hf/hub"));
        let both = [("HF_HOME", "/hf"), ("HF_HUB_CACHE", "/elsewhere")];
        assert_eq!(cache(&both), PathBuf::from("/elsewhere"));
        assert_eq!(cache(&[("HF_HOME", "")]), PathBuf::from("/home/me/.cache/huggingface/hub"));

        let nothing = HubSettings::from_variables(|_| None, None);
        assert!(matches!(nothing, Err(HubError::NoHome)));
    }

    #[test]
    fn offline_is_what_python_takes_for_true() {
        let offline = |value| settings(&[("HF_HUB_OFFLINE", value)]).offline;
        assert!(["1", "true", "TRUE", "Yes", "on", " 1 "].into_iter().all(offline));
        assert!(!["", "0", "false", "no", "off", "2"].into_iter().any(offline));
    }

    #[test]
    fn the_token_is_the_variable_or_the_file() {
        let home = tempfile::tempdir().unwrap();
        let home_path = home.path().to_str().unwrap();
        let token = |variables: &[(&str, &str)]| settings(variables).token;
        assert_eq!(token(&[("HF_HOME", home_path)]), None);
        fs::write(home.path().join("token"), "from-file\n").unwrap();
        assert_eq!(token(&[("HF_HOME", home_path)]).unwrap(), "from-file");
        let both = [("HF_HOME", home_path), ("HF_TOKEN", "from-variable")];
        assert_eq!(token(&both).unwrap(), "from-variable");
        let named = home.path().join("token");
        assert_eq!(token(&[("HF_TOKEN_PATH", named.to_str().unwrap())]).unwrap(), "from-file");
    }

    #[test]
    fn the_token_is_not_printed() {
        let settings = settings(&[("HF_TOKEN", "secret"), ("HF_ENDPOINT", "http://mirror")]);
        let printed = format!("{settings:?}");
        assert!(printed.contains("mirror") && !printed.contains("secret"), "{printed}");
    }
}
