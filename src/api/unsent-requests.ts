import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Watches for connections on which no whole request has come: nobody waits for an answer on them, but Node keeps a server that is
 * closed open for them. Returns how to end them.
 */
export function watchUnsentRequests(server: Server): () => void {
  const requests = new Map<Socket, IncomingMessage | undefined>();
  server.on('connection', (socket) => {
    requests.set(socket, undefined);
    socket.on('close', () => requests.delete(socket));
  });
  server.on('request', (request) => requests.set(request.socket, request));
  return () => {
    for (const [socket, request] of requests) if (!request?.complete) socket.destroy();
  };
}
