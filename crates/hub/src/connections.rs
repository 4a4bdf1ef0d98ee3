//! How many connections the hub holds open, in all and for each client.

use std::collections::HashMap;
use std::future::{Ready, ready};
use std::io;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum_server::accept::Accept;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Counts connections and turns away those that are too many.
#[derive(Clone)]
pub(crate) struct Connections {
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
    most: usize,
    most_of_one: usize,
}

impl Connections {
    pub(crate) fn new(most: NonZeroU32) -> Self {
        let most = most.get() as usize;
        Self { open: Arc::default(), most, most_of_one: most.div_ceil(2) }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection of this client, if there is one.
    fn admit(&self, client: IpAddr) -> Option<Place> {
        let mut open = self.open();
        let of_client = open.get(&client).copied().unwrap_or(0);
        if of_client >= self.most_of_one || open.values().sum::<usize>() >= self.most {
            return None;
        }
        open.insert(client, of_client + 1);
        Some(Place { connections: self.clone(), client })
    }
}

/// The place of a connection; it is free again when this is dropped.
pub(crate) struct Place {
    connections: Connections,
    client: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.connections.open();
        if let Some(count) = open.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.client);
            }
        }
    }
}

impl<S> Accept<TcpStream, S> for Connections {
    type Stream = Counted;
    type Service = S;
    type Future = Ready<io::Result<(Counted, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let admit = || {
            // Without delay: an answer's last piece does not wait for the client to acknowledge the
            // one before.
            stream.set_nodelay(true)?;
            let place = self.admit(stream.peer_addr()?.ip().to_canonical());
            place.ok_or_else(|| io::Error::other("too many connections"))
        };
        ready(admit().map(|place| (Counted { stream, _place: place }, service)))
    }
}

/// A connection that has a place.
pub(crate) struct Counted {
    stream: TcpStream,
    _place: Place,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_all_and_by_client() {
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        let connections = Connections::new(NonZeroU32::new(4).expect("four is not zero"));
        let first = connections.admit(address(1)).expect("there is room");
        let second = connections.admit(address(1)).expect("there is room");
        assert!(connections.admit(address(1)).is_none(), "one client has half of the places at most");
        let others = [connections.admit(address(2)), connections.admit(address(3))];
        assert!(others.iter().all(Option::is_some));
        assert!(connections.admit(address(4)).is_none(), "all places are taken");
        drop((first, second));
        assert!(connections.admit(address(1)).is_some());
        drop(others);
        assert!(connections.open().is_empty());
    }
}
