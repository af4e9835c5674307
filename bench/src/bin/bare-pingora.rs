//! A pass-through with Pingora's defaults: the measure the gateway is compared with. Two threads, the system's
//! allocator, nothing tuned, nothing added.

use std::net::SocketAddr;

use clap::Parser;
use pingora_core::Result;
use pingora_core::server::Server;
use pingora_core::server::configuration::ServerConf;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_proxy::{ProxyHttp, Session, http_proxy_service};

#[derive(Parser)]
struct Arguments {
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    upstream: SocketAddr,
}

struct PassThrough {
    upstream: SocketAddr,
}

#[async_trait::async_trait]
impl ProxyHttp for PassThrough {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn upstream_peer(&self, _session: &mut Session, _ctx: &mut ()) -> Result<Box<HttpPeer>> {
        Ok(Box::new(HttpPeer::new(self.upstream, false, String::new())))
    }
}

fn main() {
    let arguments = Arguments::parse();
    let conf = ServerConf { threads: 2, ..ServerConf::default() };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let mut service = http_proxy_service(&server.configuration, PassThrough { upstream: arguments.upstream });
    service.add_tcp(&arguments.listen.to_string());
    server.add_service(service);
    server.run_forever();
}
