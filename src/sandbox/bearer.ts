import { type Answer, refusal } from './answer.js';
import type { Grants } from './grants.js';
import type { Asked } from './router.js';

/** Refuses a request whose access token does not open its company; undefined lets it pass. */
export function access(grants: Grants, { authorization, companyId }: Asked): Answer | undefined {
  const [, token] = /^bearer +(\S+)$/i.exec(authorization ?? '') ?? [];
  if (token === undefined) return unauthorized('The request carries no bearer token.', 'Bearer realm="sandbox"');
  const checked = grants.check(token);
  if ('problem' in checked) return unauthorized(`The access token is ${checked.problem}.`);
  return checked.companyId === companyId ? undefined : unauthorized('The access token is for another company.');
}

function unauthorized(message: string, challenge = 'Bearer realm="sandbox", error="invalid_token"'): Answer {
  return refusal(401, 'unauthorized', message, { 'www-authenticate': challenge });
}
