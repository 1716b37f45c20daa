import { ROLES, type Role } from '../../db/tables/named-tokens.js';

/** The person or program that sent a request, by its token or session. */
export interface Caller {
  /** `admin` for the token of MUSTER_ADMIN_TOKEN, else the name of the named token, or of the person who signed in by OpenID Connect. */
  readonly name: string;
  readonly role: Role;
  /** The named token's id; absent for the token of MUSTER_ADMIN_TOKEN. */
  readonly tokenId?: string;
  /** The hash under which the session is kept; absent for a caller with a token. */
  readonly sessionId?: string;
}

/** The caller with the token of MUSTER_ADMIN_TOKEN. */
export const ADMIN: Caller = { name: 'admin', role: 'admin' };

/** The role that is shown values of records: names of people, or any other member (docs/privacy.md). A viewer gets ids and names of members. */
export const SEES_VALUES: Role = 'operator';

export function mayAct({ role }: Pick<Caller, 'role'>, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed);
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set in every route that asks for a token, before its handler is called. */
    caller: Caller;
  }
  interface FastifyContextConfig {
    /** The least role that may call the route. Every route that asks for a token declares one. */
    readonly role?: Role;
  }
}
