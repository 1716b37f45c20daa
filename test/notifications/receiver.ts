import { createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  // What it holds is what the tests are about.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly event: any;
}

/** What the receiver does with a request; a receipt unless said. */
export type Conduct = (response: ServerResponse, received: Received) => void;

export const answer =
  (status: number, headers: Record<string, string> = {}): Conduct =>
  (response) =>
    void response.writeHead(status, headers).end('ok');
export const hang: Conduct = () => {};

/** A webhook on a real socket. */
export class Receiver {
  readonly received: Received[] = [];
  conduct: Conduct = answer(204);
  #server: Server;
  #port = 0;

  private constructor() {
    this.#server = this.#listener();
  }

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    await receiver.#listen();
    return receiver;
  }

  get url(): URL {
    return new URL(`http://127.0.0.1:${this.#port}/hooks/muster?key=canary-of-the-address`);
  }

  /** Nothing listens any more until `comeBack`. */
  async goDown(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async comeBack(): Promise<void> {
    this.#server = this.#listener();
    await this.#listen();
  }

  /** Ids of the events, in the order of their arrival. */
  get ids(): string[] {
    return this.received.map(({ event }) => String(event.id));
  }

  async #listen(): Promise<void> {
    await new Promise<void>((resolve) => void this.#server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  #listener(): Server {
    return createServer(async (request, response) => {
      let body = '';
      request.setEncoding('utf8');
      for await (const chunk of request) body += String(chunk);
      const received = { path: request.url ?? '', headers: request.headers, body, event: JSON.parse(body) };
      this.received.push(received);
      this.conduct(response, received);
    });
  }
}

/** By the letter of the documentation, independent of the code. */
export function expectedSignature(body: string, secret: string, seconds: string): string {
  return createHmac('sha256', secret).update(`${seconds}.${body}`, 'utf8').digest('hex');
}
