import { z } from 'zod';
import type { Fault } from '../core/errors.js';
import type { Secret } from '../core/secret.js';
import { registerSecret } from '../observability/secret-registry.js';
import type { TraceEndpoint } from '../observability/start-traces.js';
import { optional, secret } from './setting-help.js';
import * as value from './setting-values.js';

const headers = z
  .string()
  .refine((text) => /^[^\s=,]+=[^,]*(,\s*[^\s=,]+=[^,]*)*$/.test(text), 'must be name=value, comma-separated')
  .pipe(value.secret);

/** The variables of OpenTelemetry that Muster reads itself. Its SDK reads the others (docs/tracing.md). */
export function traceSettings() {
  return {
    ENDPOINT: optional(value.rootUrl, {
      help: 'Address of an OpenTelemetry collector. Each run is sent there as a trace, to `/v1/traces` of that address ([tracing.md](tracing.md), which names the other `OTEL_…` variables).',
      unset: 'no traces',
      example: 'http://collector.example.com:4318',
    }),
    TRACES_ENDPOINT: optional(value.rootUrl, {
      help: 'The same for traces alone, as the whole address.',
      unset: '`OTEL_EXPORTER_OTLP_ENDPOINT/v1/traces`',
      example: 'http://collector.example.com:4318/v1/traces',
    }),
    HEADERS: secret(headers, {
      help: 'Headers of the requests to the collector: `name=value`, comma-separated, values encoded as in a URL.',
      unset: 'none',
      example: 'authorization=Basic%20dXNlcjpwYXNzd29yZA==',
    }),
  };
}

const PROTOCOL = 'http/protobuf';

interface Values {
  readonly endpoint?: URL | undefined;
  readonly tracesEndpoint?: URL | undefined;
  readonly headers?: Secret | undefined;
}

/** Where traces are sent. `env` has the switches of OpenTelemetry that say whether they are, and how. */
export function tracesOf(
  { endpoint, tracesEndpoint, headers: given }: Values,
  env: NodeJS.ProcessEnv,
): { readonly traces?: TraceEndpoint; readonly faults: readonly Fault[] } {
  registerHeaders(given?.reveal() ?? '');
  registerHeaders(env['OTEL_EXPORTER_OTLP_TRACES_HEADERS'] ?? '');
  const url = tracesEndpoint ?? (endpoint && new URL(`${endpoint.href.replace(/\/$/, '')}/v1/traces`));
  const isOff = wordOf(env, 'OTEL_SDK_DISABLED') === 'true' || wordOf(env, 'OTEL_TRACES_EXPORTER') === 'none';
  if (!url || isOff) return { faults: [] };
  const [ofTraces, ofAll] = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'] as const;
  const where = wordOf(env, ofTraces) ? ofTraces : ofAll;
  const isSpoken = (wordOf(env, where) ?? PROTOCOL) === PROTOCOL;
  const problem = `must be ${PROTOCOL}, for which collectors listen on port 4318`;
  return {
    traces: { url, ...(given && { headers: given }) },
    faults: isSpoken ? [] : [{ where, problem, example: PROTOCOL }],
  };
}

function wordOf(env: NodeJS.ProcessEnv, name: string): string | undefined {
  return env[name]?.trim().toLowerCase() || undefined;
}

/** The values of headers may not appear in the log, encoded or not. */
function registerHeaders(text: string): void {
  for (const pair of text.split(',')) {
    const encoded = pair.slice(pair.indexOf('=') + 1).trim();
    registerSecret(encoded, { lasting: true });
    registerSecret(decoded(encoded), { lasting: true });
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
