import { systemClock } from '../core/clock.js';
import type { Secret } from '../core/secret.js';
import type { StopStack } from '../core/service.js';
import type { Logger } from './logger.js';

export interface TraceEndpoint {
  /** The whole address, with its path. */
  readonly url: URL;
  /** `name=value`, comma-separated, with values encoded as in a URL. */
  readonly headers?: Secret;
}

/**
 * Sends traces from here on, until the stack stops. Call it before other services start, so that their last spans are sent, too. OpenTelemetry
 * takes time and memory: without an endpoint it is not loaded.
 */
export async function startTraces(endpoint: TraceEndpoint | undefined, logger: Logger, stack: StopStack): Promise<void> {
  if (!endpoint) return;
  const { OtelTracer } = await import('./otel-tracer.js');
  const { url, headers } = endpoint;
  await stack.start(new OtelTracer({ url, headers: headers?.reveal(), clock: systemClock, logger }));
}
