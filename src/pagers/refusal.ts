import type { MusterError } from '../core/errors.js';

/**
 * Whether the list refused a request with one of these statuses, in JSON, with a sentence or without a body. A page of HTML is somebody else's, and says
 * nothing of what was asked.
 */
export function isRefusedWith({ code, details }: MusterError, statuses: ReadonlySet<number>): boolean {
  const isOfTheApi = details['own_words'] === true || details['service_says'] !== undefined;
  return code === 'service_refused' && isOfTheApi && statuses.has(Number(details['status']));
}
