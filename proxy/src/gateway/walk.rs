//! From the head of a request to its lane: what was decided of its head is acted on, and what the gateway answers itself is
//! written.

use super::client::Client;
use super::client_connection::ClientConnection;
use super::next_step::NextStep;
use super::{Ctx, Gateway, Relay, pages};
use bytes::Bytes;
use pingora_core::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;
use proxy::batches::BatchesRequest;
use proxy::context::metrics::{Lane, RequestLane};
use proxy::engine::{Delivered, refuse};
use proxy::explain::Explained;
use proxy::request::refusal::Refusal;
use std::pin::pin;

impl Gateway {
    pub(super) async fn walk(&self, session: &mut Session, ctx: &mut Ctx) -> Result<bool> {
        if let Some(readiness) = &self.readiness
            && let Some((status, text)) = pages::health(session.req_header(), readiness)
        {
            self.count(ctx, RequestLane::Page);
            return self.own_page(session, ctx, pages::text_head(status, text.len())?, text).await;
        }
        let peer = session.client_addr().and_then(|address| address.as_inet()).map(|address| address.ip());
        let opened = self.open(session.req_header(), peer, &mut ctx.visit).await;
        self.count(ctx, opened.as_ref().map_or(RequestLane::Refused, NextStep::lane));
        match opened {
            Err(refusal) => self.refuse(session, ctx, &refusal).await,
            Ok(NextStep::Greeting) => self.json_page(session, ctx, 200, Bytes::from_static(pages::GREETING)).await,
            Ok(NextStep::Preflight) => self.own_page(session, ctx, pages::preflight()?, Bytes::new()).await,
            Ok(NextStep::Engine(mut request)) => {
                let mut client = Client::new(session);
                over(pin!(self.capabilities.engine.run(&mut client, &mut ctx.visit, &mut request)).await)
            }
            Ok(NextStep::ProviderObject(mut object)) => {
                let mut client = Client::new(session);
                let objects = &self.capabilities.provider_objects;
                over(Box::pin(objects.run(&mut client, &mut ctx.visit, &mut object)).await)
            }
            Ok(NextStep::Files(asked)) => {
                let mut client = Client::new(session);
                over(Box::pin(self.capabilities.files.run(&mut client, &mut ctx.visit, &asked)).await)
            }
            Ok(NextStep::Batches(asked)) => self.batches(session, ctx, &asked).await,
            Ok(NextStep::Mcp(call)) => {
                let mut client = Client::new(session);
                over(Box::pin(self.capabilities.mcp.run(&mut client, &mut ctx.visit, &call)).await)
            }
            Ok(NextStep::Explain(asker)) => {
                // What is read may have to be sent on.
                session.downstream_session.enable_retry_buffering();
                let explainer = &self.capabilities.explainer;
                match Box::pin(explainer.explain(&mut Client::new(session), &mut ctx.visit, asker)).await {
                    Explained::Delivered(delivered) => over(delivered),
                    Explained::Past => {
                        ctx.visit.enter(Lane::ControlPlane, &self.services.metrics);
                        ctx.relay = Some(Relay::ControlPlane);
                        Ok(false)
                    }
                }
            }
            Ok(NextStep::Relay(departure)) => self.depart(session, ctx, departure).await,
            Ok(NextStep::Passage(passage)) => {
                ctx.relay = Some(Relay::Provider(passage));
                Ok(false)
            }
            Ok(NextStep::Page { status, body }) => self.json_page(session, ctx, status, body).await,
            Ok(NextStep::ControlPlane) => {
                ctx.relay = Some(Relay::ControlPlane);
                Ok(false)
            }
        }
    }

    pub(super) async fn batches(&self, session: &mut Session, ctx: &mut Ctx, asked: &BatchesRequest) -> Result<bool> {
        let mut client = Client::new(session);
        over(Box::pin(self.capabilities.batches.run(&mut client, &mut ctx.visit, asked)).await)
    }

    pub(super) async fn refuse(&self, session: &mut Session, ctx: &mut Ctx, refusal: &Refusal) -> Result<bool> {
        let is_answered = ClientConnection::is_answered(session.downstream_session.stream());
        if is_answered || session.response_written().is_some() {
            return Err(Error::new(ErrorType::InternalError));
        }
        over(refuse(&self.services.metrics, &mut Client::new(session), &mut ctx.visit, refusal).await)
    }

    async fn json_page(&self, session: &mut Session, ctx: &mut Ctx, status: u16, body: Bytes) -> Result<bool> {
        self.own_page(session, ctx, pages::json_head(status, body.len())?, body).await
    }

    async fn own_page(
        &self,
        session: &mut Session,
        ctx: &mut Ctx,
        mut head: ResponseHeader,
        body: Bytes,
    ) -> Result<bool> {
        ctx.visit.answer.status = head.status.as_u16();
        ctx.visit.stamp(&mut head);
        ctx.visit.answers(&head.headers);
        ctx.visit.ends_with(&body);
        session.downstream_session.write_response_header(Box::new(head)).await?;
        session.downstream_session.write_response_body(body, true).await?;
        Ok(true)
    }
}

/// What Pingora is told of an exchange that needs it no more.
pub(super) fn over(delivered: Delivered) -> Result<bool> {
    match delivered {
        Delivered::Answered => Ok(true),
        Delivered::Torn => Err(Error::new_up(ErrorType::ReadError)),
        Delivered::ClientGone => Err(Error::new_down(ErrorType::ConnectionClosed)),
    }
}
