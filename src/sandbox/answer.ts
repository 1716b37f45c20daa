import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Effect } from './faults.js';
import type { ServedRequest } from './request-log.js';

export const JSON_TYPE = 'application/json; charset=utf-8';

/** A request in the sandbox: its log entry, and the fault that affects it. */
export interface Visit {
  readonly entry: ServedRequest;
  effect?: Effect | undefined;
}

export function visitOf(request: FastifyRequest): Visit {
  return request.getDecorator<Visit>('visit');
}

/** An error of the API, in a form of our own, since the service does not document its form. Handlers throw it, and the server sends it. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

export function sendJson(reply: FastifyReply, status: number, value: object, headers: Readonly<Record<string, string>> = {}) {
  const members = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, JSON.stringify(member)]));
  return sendMembers(reply.code(status).headers(headers), members);
}

/**
 * Sends an object whose members are JSON texts, so that numbers keep every digit. `wrap` names the member of an outer object that holds it.
 * An `alter` fault changes the members here.
 */
export function sendMembers(
  reply: FastifyReply,
  members: Readonly<Record<string, string | undefined>>,
  wrap?: string,
): FastifyReply {
  const { effect } = visitOf(reply.request);
  const all: Record<string, string | undefined> = { ...members };
  const altered = effect?.kind === 'alter' ? (effect.members ?? {}) : {};
  for (const [name, value] of Object.entries(altered)) all[name] = JSON.stringify(value);
  const written = Object.entries(all).filter(([, member]) => member !== undefined);
  const text = `{${written.map(([name, member]) => `${JSON.stringify(name)}:${member}`).join(',')}}`;
  return reply.type(JSON_TYPE).send(wrap === undefined ? text : `{${JSON.stringify(wrap)}:${text}}`);
}

export function sendPage(reply: FastifyReply, status: number, html: string): FastifyReply {
  const headers = {
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    'referrer-policy': 'no-referrer',
  };
  return reply.code(status).headers(headers).type('text/html; charset=utf-8').send(html);
}

export function redirect(reply: FastifyReply, location: string): FastifyReply {
  return reply.header('cache-control', 'no-store').redirect(location, 303);
}
