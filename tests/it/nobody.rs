//! An address where nobody answers.

use tokio::net::TcpSocket;

/// A port that is taken and not listened on: whoever connects is refused, and no other test gets it meanwhile.
pub struct Nobody {
    pub url: String,
    _held: TcpSocket,
}

impl Nobody {
    pub fn new() -> Self {
        let held = TcpSocket::new_v4().unwrap();
        held.bind(([127, 0, 0, 1], 0).into()).unwrap();
        Self { url: format!("http://{}", held.local_addr().unwrap()), _held: held }
    }
}
