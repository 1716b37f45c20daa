import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

/** A span as a collector receives it. Ids in hexadecimal, times in nanoseconds. */
export interface CollectedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the root. */
  readonly parentId: string;
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Names of events. */
  readonly events: readonly string[];
  /** `code`: 2 for an error. */
  readonly status: { readonly code: number; readonly message: string };
  /** Attributes of the process that sent it. */
  readonly resource: Readonly<Record<string, unknown>>;
}

/** An OpenTelemetry collector: takes spans as OTLP over HTTP in protobuf. */
export interface Collector {
  readonly url: string;
  readonly spans: CollectedSpan[];
  readonly requests: { readonly path: string; readonly headers: IncomingHttpHeaders; readonly body: Buffer }[];
  /** `hang`: requests are never answered. */
  behaviour: 'ok' | 'hang' | 'refuse';
  close(): void;
}

export async function startCollector(): Promise<Collector> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const sent = Buffer.concat(parts);
      const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
      collector.requests.push({ path: request.url!, headers: request.headers, body });
      if (collector.behaviour === 'hang') return;
      if (collector.behaviour === 'ok') collector.spans.push(...spansOf(body));
      response.writeHead(collector.behaviour === 'ok' ? 200 : 400, { 'content-type': 'application/x-protobuf' }).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const collector: Collector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: [],
    requests: [],
    behaviour: 'ok',
    close: () => server.close().closeAllConnections(),
  };
  return collector;
}

/** The fields of a protobuf message by number, in the order sent. A number is a bigint; all else stays as bytes. */
type Fields = Map<number, (bigint | Buffer)[]>;

// Numbers of fields: opentelemetry/proto/trace/v1/trace.proto and collector/trace/v1/trace_service.proto.
function spansOf(request: Buffer): CollectedSpan[] {
  return messages(fieldsOf(request), 1).flatMap((ofResource) => {
    const resource = attributesOf(messages(ofResource, 1)[0]!, 1);
    return messages(ofResource, 2).flatMap((ofScope) => messages(ofScope, 2).map((span) => spanOf(span, resource)));
  });
}

function spanOf(span: Fields, resource: Record<string, unknown>): CollectedSpan {
  const [status] = messages(span, 15);
  return {
    name: text(span, 5),
    traceId: bytes(span, 1).toString('hex'),
    spanId: bytes(span, 2).toString('hex'),
    parentId: bytes(span, 4).toString('hex'),
    start: bytes(span, 7).readBigUInt64LE(),
    end: bytes(span, 8).readBigUInt64LE(),
    attributes: attributesOf(span, 9),
    events: messages(span, 11).map((event) => text(event, 2)),
    status: { code: Number(status?.get(3)?.[0] ?? 0), message: status ? text(status, 2) : '' },
    resource,
  };
}

function attributesOf(holder: Fields, field: number): Record<string, unknown> {
  return Object.fromEntries(messages(holder, field).map((pair) => [text(pair, 1), valueOf(messages(pair, 2)[0]!)]));
}

/** AnyValue: a text, a flag, a whole number or a double. */
function valueOf(value: Fields): unknown {
  if (value.has(1)) return text(value, 1);
  if (value.has(2)) return value.get(2)![0] === 1n;
  if (value.has(3)) return Number(value.get(3)![0]);
  return value.has(4) ? bytes(value, 4).readDoubleLE() : undefined;
}

const bytes = (fields: Fields, field: number) => (fields.get(field)?.[0] ?? Buffer.alloc(0)) as Buffer;
const text = (fields: Fields, field: number) => bytes(fields, field).toString();
const messages = (fields: Fields, field: number) => (fields.get(field) ?? []).map((message) => fieldsOf(message as Buffer));

function fieldsOf(message: Buffer): Fields {
  const fields: Fields = new Map();
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++]!;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  const taken = (length: number) => message.subarray(at, (at += length));
  while (at < message.length) {
    const key = Number(varint());
    const value = { 0: varint, 1: () => taken(8), 2: () => taken(Number(varint())), 5: () => taken(4) }[key & 7]!();
    fields.set(key >> 3, [...(fields.get(key >> 3) ?? []), value]);
  }
  return fields;
}
