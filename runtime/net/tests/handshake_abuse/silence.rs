//! Promise: nobody may be silent for longer than the server bears, whatever the token says.

use throng_net::protocol::{ServerHandshakeSettings, TokenRequest};
use throng_platform::time::Nanos;

use crate::scene::*;

#[test]
fn the_shorter_of_what_token_and_server_bear_counts() {
    for (of_token, borne_s) in [(600, 3), (4, 3), (2, 2), (0, 3), (-1, 3), (i32::MIN, 3)] {
        let mut server = server_handshake(ServerHandshakeSettings { timeout_s_max: 3, ..settings() }, 1);
        let request = TokenRequest { timeout_s: of_token, ..token_request(1) };
        let client = connect(&mut server, token_with(&request, &KEY, 1), client_address(1), 1);
        let timeout = client.expect("the token is good").link.timeout();
        assert_eq!(timeout, Nanos::from_secs(borne_s), "a token that bears {of_token} s");
    }
}
