import type { CompanyKey, Environment } from '../core/company.js';
import type { Database } from '../db/connection/database.js';
import { type Actor, insertAuditEntry } from '../db/tables/audit.js';
import type { Logger } from '../observability/logger.js';
import { redactText } from '../observability/redaction.js';
import type { TokenResponse } from './token-response.js';

/** The end of a flow, for the operator. The customer's page says only what the customer can do. */
export interface FlowEnd {
  readonly linkId: string;
  readonly environment: Environment;
  readonly company?: CompanyKey | undefined;
  /** `done`, or why nothing was connected. */
  readonly outcome: string;
  readonly causes?: {
    /** The refusal of the token endpoint, or the missing member of its answer. */
    readonly reason?: string | undefined;
    /** These two come from the redirect (RFC 6749, 4.1.2.1), cleaned by `shownText`. */
    readonly error?: string | undefined;
    readonly error_description?: string | undefined;
  };
}

/** The actor for a person with a connect link, who needs no token. */
export const CONNECT_LINK: Actor = { name: 'connect link', role: null };

/** Writes the end of a flow to the log and the audit. A failure to write it is only logged, because the flow has ended. */
export async function recordFlowEnd(
  { db, logger }: { readonly db: Database; readonly logger: Logger },
  { linkId, environment, company, outcome, causes }: FlowEnd,
): Promise<void> {
  logger[outcome === 'done' ? 'info' : 'warn'](
    { environment, company_id: company?.companyId ?? null, link: linkId, result: outcome, ...causes },
    'authorization flow ended',
  );
  const details = { link_id: linkId, outcome, ...causes };
  const named = company ? { company } : { environment };
  await insertAuditEntry(db.prisma, { by: CONNECT_LINK, action: 'company.connect', ...named, details }).catch(
    (failure: unknown) => logger.error({ err: failure }, 'the end of an authorization flow could not be recorded'),
  );
}

const LONGEST_TEXT = 300;

/** Cleans an external text so that it may be shown and stored: one line of limited length, without tokens. Undefined if nothing is left. */
export function shownText(text: string | undefined): string | undefined {
  const line = redactText((text ?? '').slice(0, 4 * LONGEST_TEXT))
    // Control and format characters could move the operator's cursor or reverse the direction of the text.
    .replace(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim();
  return line === '' ? undefined : line.length > LONGEST_TEXT ? `${line.slice(0, LONGEST_TEXT)}…` : line;
}

/** Why the token endpoint granted nothing, or nothing usable; undefined if it granted. */
export function reasonOf(answer: TokenResponse): string | undefined {
  switch (answer.kind) {
    case 'refused':
    case 'unexplained':
    case 'client_refused':
      return answer.error ?? `status ${answer.status}`;
    case 'malformed':
      return answer.problem;
    case 'transient':
      return `status ${answer.status}`;
    case 'unreachable':
      return answer.cause.code;
    case 'ambiguous':
      return answer.cause?.code ?? answer.problem;
    case 'granted':
      return undefined;
  }
}
