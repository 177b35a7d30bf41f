// throng-client for browsers and Node: see README.md beside this file.

export { Client, textOfReason } from "./client.ts";
export type { ClientState, ClientStats, DisconnectReason, Named, OwnState } from "./client.ts";
export type { ConnectionStats } from "./connection/connection.ts";
export type { World } from "./control.ts";
export type { HandshakeFailure, QueueState } from "./netcode/handshake.ts";
export type { Tunnel } from "./tunnels/tunnel.ts";
export { openTunnel, waysOf } from "./tunnels/ways.ts";
export type { TokenAnswer, Ways } from "./tunnels/ways.ts";
export { openWebTransport } from "./tunnels/web_transport.ts";
export type { WebTransportPlace } from "./tunnels/web_transport.ts";
export { openWebSocket } from "./tunnels/websocket.ts";
export type { StateError } from "./replicas/held_samples.ts";
export type { ReplicaCounts, Replicas } from "./replicas/replicas.ts";
export { Schema } from "./schema.ts";
export type { GameTypes, SchemaData } from "./schema.ts";
export { SocketClient, connect } from "./socket_client.ts";
export { Track, mix, mixAngle } from "./view/interpolation.ts";
export type { Between } from "./view/interpolation.ts";
export { Predictor } from "./view/prediction.ts";
export type { Model, Place, PredictionSettings, PredictionStats } from "./view/prediction.ts";
export type { Moment } from "./view/view_clock.ts";
export { entityId, generationOf, slotOf } from "./wire/field.ts";
export type { EntityId } from "./wire/field.ts";
