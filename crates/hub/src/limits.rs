//! How much one client may ask of the hub.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::api::problem::Problem;

/// Clients remembered before those who have been quiet are forgotten.
const CLIENTS: usize = 10_000;

/// A rate for each client.
pub(crate) struct Limits {
    limiter: DefaultKeyedRateLimiter<IpAddr>,
    trusted_proxy: Option<IpAddr>,
}

impl Limits {
    pub(crate) fn new(requests_per_minute: NonZeroU32, trusted_proxy: Option<IpAddr>) -> Self {
        Self { limiter: RateLimiter::keyed(Quota::per_minute(requests_per_minute)), trusted_proxy }
    }

    fn check(&self, client: IpAddr) -> Result<(), Problem> {
        if self.limiter.len() > CLIENTS {
            self.limiter.retain_recent();
        }
        self.limiter.check_key(&network(client)).map_err(|denied| {
            let wait = denied.wait_time_from(DefaultClock::default().now());
            Problem::later(
                StatusCode::TOO_MANY_REQUESTS,
                wait.as_secs() + 1,
                "you ask more often than this hub allows; wait as long as Retry-After says",
            )
        })
    }
}

/// Whoever has an IPv6 address usually has 2⁶⁴ of them.
fn network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// Who asks: the peer, or, if that is the trusted proxy, the last address that it saw itself.
pub(crate) fn client(peer: IpAddr, headers: &HeaderMap, trusted_proxy: Option<IpAddr>) -> IpAddr {
    if Some(peer.to_canonical()) != trusted_proxy.map(|proxy| proxy.to_canonical()) {
        return peer;
    }
    let forwarded = headers.get_all("x-forwarded-for").iter().next_back();
    let last = forwarded.and_then(|value| value.to_str().ok()).and_then(|value| value.rsplit(',').next());
    last.and_then(|address| address.trim().parse().ok()).unwrap_or(peer)
}

/// Refuses clients that ask too often.
pub(crate) async fn limit_rate(
    State(limits): State<Arc<Limits>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let client = client(peer.ip(), request.headers(), limits.trusted_proxy);
    match limits.check(client) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("the test's addresses are valid")
    }

    #[test]
    fn only_the_trusted_proxy_is_believed() {
        let mut headers = HeaderMap::new();
        headers.append("x-forwarded-for", "10.9.9.9, 203.0.113.7".parse().expect("a header value"));
        let proxy = Some(address("127.0.0.1"));
        assert_eq!(client(address("127.0.0.1"), &headers, proxy), address("203.0.113.7"));
        assert_eq!(client(address("::ffff:127.0.0.1"), &headers, proxy), address("203.0.113.7"));
        assert_eq!(client(address("198.51.100.1"), &headers, proxy), address("198.51.100.1"));
        assert_eq!(client(address("127.0.0.1"), &headers, None), address("127.0.0.1"));
        headers.append("x-forwarded-for", "nonsense".parse().expect("a header value"));
        assert_eq!(client(address("127.0.0.1"), &headers, proxy), address("127.0.0.1"));
    }

    #[test]
    fn a_client_that_asks_too_often_is_told_to_wait() {
        let limits = Limits::new(NonZeroU32::new(3).expect("three is not zero"), None);
        for _ in 0..3 {
            assert!(limits.check(address("203.0.113.7")).is_ok());
        }
        assert!(limits.check(address("203.0.113.7")).is_err());
        assert!(limits.check(address("203.0.113.8")).is_ok(), "others are not affected");
        assert!(limits.check(address("2001:db8::1")).is_ok());
        for host in ["2001:db8::2", "2001:db8::3"] {
            assert!(limits.check(address(host)).is_ok());
        }
        assert!(limits.check(address("2001:db8::4")).is_err(), "one network is one client");
    }
}
