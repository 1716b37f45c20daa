import type { FastifyReply, FastifyRequest } from 'fastify';

const COOKIE = /(?:^|;\s*)muster_session=([\w-]+)/;

/** The session key in the browser's cookie, valid or not. */
export function sessionKeyOf({ headers }: FastifyRequest): string | undefined {
  return COOKIE.exec(headers.cookie ?? '')?.[1];
}

/** The cookie of a sign-in under way. With https, its prefix guarantees that no other host has set it. */
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

/** `SameSite=Lax` lets links in mails work; forms have a CSRF token. The cookie ends with the browser. */
export function setSessionKey(reply: FastifyReply, key: string, isSecure: boolean): void {
  reply.header('set-cookie', cookie(key, isSecure));
}

export function clearSessionKey(reply: FastifyReply, isSecure: boolean): void {
  reply.header('set-cookie', `${cookie('', isSecure)}; Max-Age=0`);
}

function cookie(value: string, isSecure: boolean, name = 'muster_session'): string {
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
}
