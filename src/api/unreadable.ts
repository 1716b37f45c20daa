import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { PROBLEM_TYPE, type Problem, problemBody, sendProblem } from './problem.js';

/** Answers what is too malformed to become a request. Its bytes are not logged: there may be a token among them. */
export function answerUnreadable({ code }: NodeJS.ErrnoException, socket: Socket): void {
  if (code === 'ECONNRESET' || socket.destroyed) return;
  const { status, detail } = REFUSALS[code ?? ''] ?? { status: 400, detail: 'This is not HTTP as RFC 9112 has it.' };
  const body = JSON.stringify(problemBody({ status, code: 'invalid_request', detail }));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `Content-Type: ${PROBLEM_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  if (socket.writable) socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  // Where the message ended nobody knows: what follows must not be taken for a request.
  socket.destroySoon();
}

const REFUSALS: Readonly<Record<string, Pick<Problem, 'status' | 'detail'>>> = {
  HPE_HEADER_OVERFLOW: { status: 431, detail: 'The headers are too large.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: 'The request did not come to its end in time.' },
};

/** What Node.js answers by itself, with no body, unless somebody listens: an absent host (when it is not told to) and a strange Expect. */
export function answerForNode(app: FastifyInstance): void {
  app.addHook('onRequest', async ({ raw }, reply) => {
    if (raw.httpVersion !== '1.1' || raw.headers.host !== undefined) return undefined;
    return sendProblem(reply, { status: 400, code: 'invalid_request', detail: 'A request of HTTP/1.1 names its host.' });
  });
  app.server.on('checkExpectation', (_request, response) => {
    const detail = 'Nothing but 100-continue can be expected.';
    const body = JSON.stringify(problemBody({ status: 417, code: 'invalid_request', detail }));
    response.writeHead(417, { 'content-type': PROBLEM_TYPE, 'content-length': Buffer.byteLength(body) }).end(body);
  });
}
