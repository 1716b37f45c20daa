import type { Effect } from '../faults.js';
import type { Act } from './lesson.js';

const HTML = { 'content-type': 'text/html; charset=utf-8' };

/** A refusal by the API: a code and a sentence as JSON. */
export function refusal(status: number, error: string, message: string): Act {
  return { kind: 'request', effect: { kind: 'status', status, body: JSON.stringify({ error, message }) } };
}

/** An HTML page, as a gateway or firewall in front of the API sends it. */
export function htmlAnswer(status: number, title: string, headers: Readonly<Record<string, string>> = {}): Effect {
  const body = `<!doctype html><html><head><title>${title}</title></head><body><h1>${title}</h1></body></html>`;
  return { kind: 'status', status, headers: { ...HTML, ...headers }, body };
}
