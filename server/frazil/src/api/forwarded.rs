//! Where a request comes from and where it was sent to, as the proxies in between tell it. Values in, values out.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, header};
use ipnet::IpNet;

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// What is to be believed of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Told {
    /// The client, or the last one before it that is known.
    pub source: IpAddr,
    /// The URL that the client has for our root, without a slash at its end.
    pub url: Option<String>,
}

/// What one proxy says of the request that it was sent.
#[derive(Debug, Default, Clone)]
struct Hop {
    from: Option<IpAddr>,
    proto: Option<String>,
    host: Option<String>,
}

/// Goes from the nearest hop outwards for as long as the sender is trusted. A proxy that writes one kind of headers
/// lets those of the other kind through as its client wrote them: where the two differ, neither counts.
pub fn read(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> Told {
    let peer = peer.to_canonical();
    let by_kind = [by_standard(headers), by_custom(headers)];
    let mut told = by_kind.into_iter().filter(|hops| !hops.is_empty()).map(|hops| follow(peer, hops, trusted));
    let (source, hop) = match (told.next(), told.next()) {
        (None, _) => (peer, Hop::default()),
        (Some(one), None) => one,
        (Some(one), Some(other)) if one.0 == other.0 => (one.0, merge(other.1, one.1)),
        (Some(_), Some(_)) => (peer, Hop::default()),
    };
    let url = url(hop, &list(headers, PREFIX));
    Told { source, url }
}

/// The client's address, and what the outermost trusted proxy says of its request. The nearest hop comes first.
fn follow(peer: IpAddr, hops: Vec<Hop>, trusted: &[IpNet]) -> (IpAddr, Hop) {
    let (mut source, mut told) = (peer, Hop::default());
    for hop in hops {
        if !trusted.iter().any(|network| network.contains(&source)) {
            break;
        }
        let from = hop.from;
        told = merge(told, hop);
        match from {
            Some(from) => source = from,
            None => break,
        }
    }
    (source, told)
}

/// The outer one is nearer to the client, and wins.
fn merge(inner: Hop, outer: Hop) -> Hop {
    Hop { from: outer.from.or(inner.from), proto: outer.proto.or(inner.proto), host: outer.host.or(inner.host) }
}

/// Told only where the whole of it is known: a client does better with the URL that it has than with half a new one.
fn url(hop: Hop, prefixes: &[String]) -> Option<String> {
    let proto = hop.proto.filter(|proto| matches!(proto.as_str(), "http" | "https"))?;
    let host = hop.host.filter(|host| !host.contains('@') && host.parse::<Authority>().is_ok())?;
    let prefix: String = prefixes.iter().map(|prefix| prefix.trim_end_matches('/')).collect();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%".contains(&byte);
    let fits = prefix.is_empty() || prefix.starts_with('/') && !prefix.contains("//") && prefix.bytes().all(is_plain);
    fits.then(|| format!("{proto}://{host}{prefix}"))
}

/// `Forwarded`, see RFC 7239.
fn by_standard(headers: &HeaderMap) -> Vec<Hop> {
    let texts = headers.get_all(header::FORWARDED).iter().filter_map(|value| value.to_str().ok());
    let mut hops: Vec<Hop> = texts.flat_map(|text| split(text, ',')).map(hop).collect();
    hops.reverse();
    hops
}

fn hop(element: &str) -> Hop {
    let mut hop = Hop::default();
    for (name, value) in split(element, ';').filter_map(|pair| pair.split_once('=')) {
        let value = unquoted(value.trim());
        match name.trim().to_ascii_lowercase().as_str() {
            "for" => hop.from = address(&value),
            "proto" => hop.proto = Some(value.to_ascii_lowercase()),
            "host" => hop.host = Some(value),
            _ => {}
        }
    }
    hop
}

/// The parts between separators that no quotes are around.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |letter| {
        let literal = escaped;
        escaped = quoted && !literal && letter == '\\';
        quoted ^= letter == '"' && !literal;
        letter == separator && !quoted
    })
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')) else {
        return value.to_owned();
    };
    let mut letters = inner.chars();
    let mut plain = String::with_capacity(inner.len());
    while let Some(letter) = letters.next() {
        plain.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    plain
}

/// `X-Forwarded-For` and its kin. A proxy that sets a value instead of adding one has the last word of those before it.
fn by_custom(headers: &HeaderMap) -> Vec<Hop> {
    let [sources, protos, hosts] = [FOR, PROTO, HOST].map(|name| list(headers, name));
    let hops = sources.len().max(usize::from(!protos.is_empty() || !hosts.is_empty()));
    let at = |values: &[String], hop: usize| values.get(values.len().saturating_sub(hop + 1)).cloned();
    (0..hops)
        .map(|hop| Hop {
            from: sources.iter().rev().nth(hop).and_then(|text| address(text)),
            proto: at(&protos, hop).map(|proto| proto.to_ascii_lowercase()),
            host: at(&hosts, hop),
        })
        .collect()
}

fn list(headers: &HeaderMap, name: HeaderName) -> Vec<String> {
    let texts = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    texts
        .flat_map(|text| text.split(','))
        .map(|entry| entry.trim().to_owned())
        .filter(|entry| !entry.is_empty())
        .collect()
}

/// An address with or without its port; `None` for `unknown`, and for names that hide one.
fn address(text: &str) -> Option<IpAddr> {
    let bare = || text.parse::<IpAddr>().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let in_brackets = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::from);
    bare().or_else(with_port).or_else(in_brackets).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const PROXY: [u8; 4] = [10, 0, 0, 1];

    fn told(peer: [u8; 4], headers: &[(&'static str, &str)]) -> (String, Option<String>) {
        let headers =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
        let trusted = ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        let told = read(peer.into(), &headers.collect(), &trusted);
        (told.source.to_string(), told.url)
    }

    fn source(header: (&'static str, &str)) -> String {
        told(PROXY, &[header]).0
    }

    #[test]
    fn who_is_not_trusted_is_not_believed() {
        let headers = [
            ("x-forwarded-for", "1.2.3.4"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "evil.example"),
            ("forwarded", "for=1.2.3.4;proto=https;host=evil.example"),
        ];
        assert_eq!(told([192, 0, 2, 1], &headers), ("192.0.2.1".into(), None));
    }

    #[test]
    fn hops_count_from_the_right_until_the_first_that_is_not_trusted() {
        for (header, client) in [
            (("x-forwarded-for", "6.6.6.6, 1.2.3.4, 10.0.0.2"), "1.2.3.4"),
            (("x-forwarded-for", "1.2.3.4:5678"), "1.2.3.4"),
            (("x-forwarded-for", "2001:db8::1"), "2001:db8::1"),
            (("x-forwarded-for", "::ffff:10.0.0.3"), "10.0.0.3"),
            (("forwarded", "for=6.6.6.6, for=1.2.3.4;by=x, For=\"[fd00::2]:80\""), "1.2.3.4"),
            (("forwarded", "for=\"[2001:db8::1]\""), "2001:db8::1"),
        ] {
            assert_eq!(source(header), client, "{header:?}");
        }
    }

    #[test]
    fn what_is_no_address_ends_the_way() {
        for header in [
            ("x-forwarded-for", "1.2.3.4, unknown"),
            ("x-forwarded-for", ""),
            ("forwarded", "for=1.2.3.4, for=_hidden"),
            ("forwarded", "for=\"1.2.3.4, for=5.6.7.8"),
            ("forwarded", ";;=,"),
        ] {
            assert_eq!(source(header), "10.0.0.1", "{header:?}");
        }
    }

    #[test]
    fn the_two_kinds_must_agree() {
        let differ = [("forwarded", "for=6.6.6.6;proto=https;host=a"), ("x-forwarded-for", "1.2.3.4")];
        assert_eq!(told(PROXY, &differ), ("10.0.0.1".into(), None));
        let agree = [("forwarded", "for=1.2.3.4;proto=https;host=a"), ("x-forwarded-for", "1.2.3.4")];
        assert_eq!(told(PROXY, &agree), ("1.2.3.4".into(), Some("https://a".into())));
    }

    #[test]
    fn the_url_is_the_one_that_the_client_has() {
        for (headers, url) in [
            (&[("x-forwarded-proto", "https"), ("x-forwarded-host", "c.example")][..], "https://c.example"),
            (&[("x-forwarded-proto", "HTTPS"), ("x-forwarded-host", "[::1]:8443")], "https://[::1]:8443"),
            (
                &[
                    ("x-forwarded-for", "1.2.3.4, 10.0.0.2"),
                    ("x-forwarded-proto", "https, http"),
                    ("x-forwarded-host", "c.example, inner"),
                    ("x-forwarded-prefix", "/a/, /b"),
                ],
                "https://c.example/a/b",
            ),
            (
                &[("forwarded", "for=6.6.6.6;host=evil, for=1.2.3.4;proto=https;host=\"c.example:1\"")],
                "https://c.example:1",
            ),
        ] {
            assert_eq!(told(PROXY, headers).1.as_deref(), Some(url), "{headers:?}");
        }
    }

    #[test]
    fn half_a_url_is_none() {
        for headers in [
            &[("x-forwarded-host", "c.example")][..],
            &[("x-forwarded-proto", "https")],
            &[("x-forwarded-proto", "ftp"), ("x-forwarded-host", "c.example")],
            &[("x-forwarded-proto", "https"), ("x-forwarded-host", "me@c.example")],
            &[("x-forwarded-proto", "https"), ("x-forwarded-host", "c.example/x")],
            &[("x-forwarded-proto", "https"), ("x-forwarded-host", "c"), ("x-forwarded-prefix", "//evil")],
        ] {
            assert_eq!(told(PROXY, headers).1, None, "{headers:?}");
        }
    }
}
