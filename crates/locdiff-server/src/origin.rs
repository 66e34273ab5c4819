//! Which requests of browsers are answered. A page of another site must not be able to use this server through the browser of
//! somebody who visits it: neither by a request across sites, nor by a name of its own that it lets point here (DNS rebinding).

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::header;
use axum::http::uri::Authority;

use crate::problem::{OTHER_ORIGIN, Problem};
use crate::settings::Settings;

/// Names under which requests may call this server.
pub(crate) struct Hosts {
    chosen: Vec<String>,
    address: IpAddr,
    /// A server that others can reach has names that it doesn't know.
    any: bool,
}

impl Hosts {
    pub(crate) fn new(settings: &Settings) -> Hosts {
        let address = settings.host.to_canonical();
        let any = settings.allowed_hosts.is_empty() && !address.is_loopback();
        Hosts { chosen: settings.allowed_hosts.clone(), address, any }
    }

    /// Rejects what only a browser on another site sends.
    pub(crate) fn check(&self, request: &Request) -> Result<(), Problem> {
        let rejected = |detail: &str| Err(Problem::new(OTHER_ORIGIN, detail));
        let value = |name: &str| request.headers().get(name).map(|value| value.to_str().ok());
        let asked: Option<Option<Authority>> = match request.uri().authority() {
            Some(stated) => Some(authority(stated.as_str())),
            None => {
                let host = value(header::HOST.as_str()).filter(|host| *host != Some(""));
                host.map(|host| authority(host?))
            }
        };
        // Without a name it is no browser. Whether a server is alive is no secret.
        let is_open = self.any || request.uri().path().starts_with("/health/");
        let is_named = asked
            .as_ref()
            .is_none_or(|asked| asked.as_ref().is_some_and(|asked| self.is_allowed(asked.host())));
        if !is_open && !is_named {
            return rejected(
                "the Host header names another server: use the address of this one, or start it with --allowed-host NAME",
            );
        }
        // Links from elsewhere may lead to the page itself.
        if !request.uri().path().starts_with("/v1/") {
            return Ok(());
        }
        let own = |origin: &str| {
            let scheme = ["http://", "https://"].into_iter().find(|it| origin.starts_with(it));
            let stated = scheme.and_then(|scheme| authority(&origin[scheme.len()..]));
            stated.is_some_and(|origin| {
                // Either may state the port that its scheme has anyway.
                let port = |authority: &Authority| {
                    authority.port_u16().filter(|port| ![80, 443].contains(port))
                };
                let is_same = |asked: &Authority| {
                    asked.host().eq_ignore_ascii_case(origin.host()) && port(asked) == port(&origin)
                };
                asked.iter().flatten().any(is_same) || self.is_chosen(origin.host())
            })
        };
        let origin = value(header::ORIGIN.as_str()).is_none_or(|origin| origin.is_some_and(own));
        let site = value("sec-fetch-site")
            .is_none_or(|site| site.is_some_and(|site| ["same-origin", "none"].contains(&site)));
        if origin && site {
            return Ok(());
        }
        rejected(
            "requests of pages of other sites are rejected: use the page of this server, or a program",
        )
    }

    fn is_allowed(&self, host: &str) -> bool {
        let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
        // An address that somebody typed can't be made to point elsewhere.
        let own = address.is_some_and(|address| {
            address.is_loopback() || address == self.address || self.address.is_unspecified()
        });
        own || host.eq_ignore_ascii_case("localhost") || self.is_chosen(host)
    }

    /// Names that the operator has chosen. Other servers of this machine are called `localhost` too.
    fn is_chosen(&self, host: &str) -> bool {
        self.chosen.iter().any(|chosen| chosen.eq_ignore_ascii_case(host))
    }
}

/// A name with or without a port. What stands before an `@` is no part of a name, and no browser sends it.
fn authority(stated: &str) -> Option<Authority> {
    stated.parse().ok().filter(|_| !stated.contains('@'))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use axum::body::Body;

    use super::*;

    fn status(settings: &Settings, path: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        Hosts::new(settings).check(&request).map_or_else(|problem| problem.status(), |()| 200)
    }

    #[test]
    fn names_of_others_are_rejected_on_loopback() {
        let settings = Settings::default();
        let named = |host: &str| status(&settings, "/", &[("host", host)]);
        for ours in ["127.0.0.1:8417", "localhost", "LocalHost:9", "[::1]:8417", "127.8.8.8"] {
            assert_eq!(named(ours), 200, "{ours}");
        }
        for theirs in [
            "evil.example",
            "evil.example:8417",
            "localhost.evil.example",
            "evil.example@127.0.0.1",
            "8.8.8.8",
            "a b",
            "?",
        ] {
            assert_eq!(named(theirs), 403, "{theirs}");
        }
        // No browser.
        assert_eq!((status(&settings, "/", &[]), named("")), (200, 200));
        assert_eq!(status(&settings, "/health/live", &[("host", "evil.example")]), 200);
        // The name of the request's own line is the one that counts.
        let through = |uri: &str| status(&settings, uri, &[("host", "localhost")]);
        assert_eq!((through("http://evil.example/"), through("http://localhost/")), (403, 200));
        assert_eq!(through("http://evil.example@localhost/"), 403);
        let allowed = Settings { allowed_hosts: vec!["maps.example".to_owned()], ..settings };
        assert_eq!(status(&allowed, "/", &[("host", "maps.example:80")]), 200);
        assert_eq!(status(&allowed, "/", &[("host", "evil.example")]), 403);
        // A server for others has names that it was not told; once it is told, no others.
        let host = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let open = Settings { host, ..Settings::default() };
        assert_eq!(status(&open, "/", &[("host", "any.example")]), 200);
        let told = Settings { host, ..allowed };
        assert_eq!(status(&told, "/", &[("host", "any.example")]), 403);
        assert_eq!(status(&told, "/", &[("host", "10.1.2.3:8417")]), 200);
    }

    #[test]
    fn pages_of_other_sites_get_no_answer() {
        let settings = Settings::default();
        let host = ("host", "localhost:8417");
        let asked =
            |name: &str, value: &str| status(&settings, "/v1/locate", &[host, (name, value)]);
        assert_eq!(asked("origin", "http://localhost:8417"), 200);
        assert_eq!(asked("origin", "https://localhost:8417"), 200);
        for other in ["http://evil.example", "http://localhost:3000", "null", "", "http://"] {
            assert_eq!(asked("origin", other), 403, "{other}");
        }
        for (site, expected) in
            [("same-origin", 200), ("none", 200), ("cross-site", 403), ("same-site", 403)]
        {
            assert_eq!(asked("sec-fetch-site", site), expected, "{site}");
        }
        // A link to the page.
        assert_eq!(status(&settings, "/", &[host, ("sec-fetch-site", "cross-site")]), 200);
        let headers = [("host", "localhost:443"), ("origin", "https://localhost")];
        assert_eq!(status(&settings, "/v1/locate", &headers), 200);
        // A proxy that hides the name by which it was called.
        let behind = Settings { allowed_hosts: vec!["maps.example".to_owned()], ..settings };
        let headers = [("host", "127.0.0.1:8417"), ("origin", "https://maps.example")];
        assert_eq!(status(&behind, "/v1/locate", &headers), 200);
    }
}
