import { MusterError } from '../core/errors.js';
import type { RequestOutcome } from '../observability/work-metrics.js';

/** Names how a request ended, for the metrics: by its status, or by the error with which no answer came. */
export function outcomeOf(ended: unknown): RequestOutcome {
  if (typeof ended === 'number') return ofStatus(ended);
  if (!(ended instanceof MusterError)) return 'aborted';
  if (ended.code === 'service_timeout') return 'timeout';
  return ended.code === 'service_unreachable' ? 'unreachable' : 'unreadable';
}

/** Whether the status brings a page, or says that it is as it was. */
export function isPage(status: number): boolean {
  return ofStatus(status) === '2xx' || status === 304;
}

function ofStatus(status: number): RequestOutcome {
  if (status === 429) return '429';
  if (status >= 500) return '5xx';
  if (status >= 400) return '4xx';
  return status >= 300 ? '3xx' : '2xx';
}
