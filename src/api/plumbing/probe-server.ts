import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Clock } from '../../core/clock.js';
import { MusterError } from '../../core/errors.js';
import type { Service } from '../../core/service.js';
import { singleFlight } from '../../core/single-flight.js';
import { type Readiness, type ReadinessCheck, readinessOf } from './readiness.js';

export interface ProbeServerOptions {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  readonly readiness: readonly ReadinessCheck[];
}

/** Probes come one at a time, so they never need as many connections. */
const MAX_CONNECTIONS = 100;
const REQUEST_TIMEOUT_MS = 5_000;

/**
 * Responds to `GET /healthz` and `GET /readyz`, without a token, and to nothing else. It uses Node's HTTP server alone, which saves a worker the ten
 * megabytes of the admin API. It shares the event loop with the work: while that is blocked, no probe gets a response.
 */
export class ProbeServer implements Service {
  readonly name = 'probes';
  readonly #options: ProbeServerOptions;
  readonly #readiness: () => Promise<Readiness>;
  readonly #server = createServer(
    { headersTimeout: REQUEST_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS },
    (request, response) => void this.#answer(request, response),
  );

  constructor(options: ProbeServerOptions) {
    this.#options = options;
    this.#readiness = singleFlight(() => readinessOf(options.readiness), { clock: options.clock, keepMs: 0 });
    this.#server.maxConnections = MAX_CONNECTIONS;
  }

  /** Throws `invalid_configuration` where it cannot listen. */
  async start(): Promise<void> {
    const { host, port } = this.#options;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', ({ code }: NodeJS.ErrnoException) => reject(cannotListen(host, port, code)));
      this.#server.listen(port, host, resolve);
    });
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer({ method, url = '' }: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = url.split('?')[0];
    if (path !== '/healthz' && path !== '/readyz') return send(response, 404, { error: 'only /healthz and /readyz are here' });
    if (method !== 'GET' && method !== 'HEAD') return send(response.setHeader('allow', 'GET, HEAD'), 405, { error: 'only GET' });
    if (path === '/healthz') return send(response, 200, { status: 'ok' });
    const readiness = await this.#readiness();
    send(response, readiness.ready ? 200 : 503, readiness);
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  // The first header identifies Muster: another program may listen there and report health.
  response.writeHead(status, {
    'x-service': 'muster',
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
  });
  response.end(JSON.stringify(body));
}

function cannotListen(host: string, port: number, code: string | undefined): MusterError {
  const why = code === 'EADDRINUSE' ? 'is taken' : `cannot be listened on (${code})`;
  return new MusterError(
    'invalid_configuration',
    `PROBE_PORT: port ${port} on ${host} ${why}. Set it to a free one, a different one for each process of this host, for example: 9100`,
  );
}
