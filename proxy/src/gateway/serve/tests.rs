//! Listeners of one port are told apart when sockets are handed over.

use super::*;

#[test]
fn every_service_spells_the_same_address_differently() {
    for host in ["127.0.0.1", "0.0.0.0", "::1", "::"] {
        let host: IpAddr = host.parse().unwrap();
        let spelled: Vec<String> = (0..4).map(|index| address(host, 8787, index)).collect();
        for (index, text) in spelled.iter().enumerate() {
            assert_eq!(text.parse::<SocketAddr>().unwrap(), SocketAddr::new(host, 8787));
            assert!(!spelled[..index].contains(text), "{text}");
        }
    }
}
