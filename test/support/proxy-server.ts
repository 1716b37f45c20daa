import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, request } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { pipeline } from 'node:stream';

export interface ProxyServer {
  /** `http://127.0.0.1:port`, with the user and the password where it wants them. */
  readonly url: string;
  readonly port: number;
  /** `CONNECT host:port` and `GET http://host/path`, in the order in which they came. */
  readonly asked: string[];
  close(): Promise<void>;
}

interface ProxyOptions {
  /** `user:password` that it wants; everybody may pass unless set. */
  readonly credentials?: string;
  /** Status of every CONNECT, in the place of a way. */
  readonly refuses?: number;
  /** Takes requests and answers none. */
  readonly hangs?: boolean;
  /** Hosts that it knows, as those of a network that no name server of ours knows: `api.internal:443` to host and port. */
  readonly hosts?: Readonly<Record<string, string>>;
  /** Speaks TLS itself. */
  readonly tls?: { readonly key: string; readonly cert: string };
}

/** A forward proxy: CONNECT for https, whole addresses for http. */
export async function startProxy({
  credentials,
  refuses,
  hangs = false,
  hosts = {},
  tls,
}: ProxyOptions = {}): Promise<ProxyServer> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const isLetIn = ({ headers }: IncomingMessage) =>
    credentials === undefined || headers['proxy-authorization'] === `Basic ${Buffer.from(credentials).toString('base64')}`;
  const forward: RequestListener = (incoming, response) => {
    asked.push(`${incoming.method} ${incoming.url}`);
    if (hangs) return;
    if (!isLetIn(incoming)) return void response.writeHead(407, { 'proxy-authenticate': 'Basic realm="proxy"' }).end();
    if (!URL.canParse(incoming.url!)) return void response.writeHead(400).end('no whole address');
    const { 'proxy-authorization': _, ...headers } = incoming.headers;
    const target = new URL(incoming.url!);
    const onward = request(
      hosts[target.host] ? new URL(target.pathname + target.search, `http://${hosts[target.host]}`) : target,
      { method: incoming.method!, headers, agent: false },
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        pipeline(answer, response, () => {});
      },
    );
    onward.on('error', () => response.writeHead(502).end());
    pipeline(incoming, onward, () => {});
  };
  const server = tls ? createTlsServer(tls, forward) : createServer(forward);
  server.on('connection', (socket) => sockets.add(socket));
  server.on('connect', (incoming, client: Socket, head) => {
    asked.push(`CONNECT ${incoming.url}`);
    client.on('error', () => {});
    if (hangs) return;
    if (!isLetIn(incoming)) return client.end('HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n');
    if (refuses !== undefined) return client.end(`HTTP/1.1 ${refuses} No\r\nContent-Length: 0\r\n\r\n`);
    const [host, port] = (hosts[incoming.url!] ?? incoming.url!).split(/:(?=\d+$)/) as [string, string];
    const onward = connect(Number(port), host.replace(/^\[(.*)\]$/, '$1'));
    sockets.add(onward);
    onward.once('connect', () => {
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      if (head.length > 0) onward.write(head);
      pipeline(onward, client, onward, () => {});
    });
    onward.on('error', () => client.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http${tls ? 's' : ''}://${credentials === undefined ? '' : `${credentials}@`}127.0.0.1:${port}`,
    port,
    asked,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
