import type { FastifyReply, FastifyRequest } from 'fastify';

const COOKIE = /(?:^|;\s*)muster_session=([\w-]+)/;

/** The key of the session that the browser has, whatever it is worth. */
export function sessionKeyOf({ headers }: FastifyRequest): string | undefined {
  return COOKIE.exec(headers.cookie ?? '')?.[1];
}

/** The cookie of a signing in that is under way. By https its name says that no other host may have set it. */
const flowCookie = (isSecure: boolean) => `${isSecure ? '__Host-' : ''}muster_sign_in`;

export function signInFlowOf({ headers }: FastifyRequest, isSecure: boolean): string | undefined {
  return new RegExp(`(?:^|;\\s*)${flowCookie(isSecure)}=([\\w.-]+)`).exec(headers.cookie ?? '')?.[1];
}

export function setSignInFlow(reply: FastifyReply, text: string, isSecure: boolean): void {
  reply.header('set-cookie', cookie(text, isSecure, flowCookie(isSecure)));
}

export function clearSignInFlow(reply: FastifyReply, isSecure: boolean): void {
  reply.header('set-cookie', `${cookie('', isSecure, flowCookie(isSecure))}; Max-Age=0`);
}

/** `Lax`, so that a link in a mail leads to its page; forms are protected by a text of their own. Gone when the browser closes. */
export function setSessionKey(reply: FastifyReply, key: string, isSecure: boolean): void {
  reply.header('set-cookie', cookie(key, isSecure));
}

export function clearSessionKey(reply: FastifyReply, isSecure: boolean): void {
  reply.header('set-cookie', `${cookie('', isSecure)}; Max-Age=0`);
}

function cookie(value: string, isSecure: boolean, name = 'muster_session'): string {
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
}
