import type { AuthorizationFailure, Failed } from '../../oauth/authorization.js';
import type { ConnectPage } from './connect-page.js';
import type { Language } from './connect-texts.js';

type Kind = Pick<ConnectPage, 'status' | 'tone'>;

/** The texts of each failure have its name in the files of texts. */
const FAILURES: Readonly<Record<AuthorizationFailure, Kind>> = {
  unknown_link: { status: 404, tone: 'problem' },
  expired_link: { status: 410, tone: 'wait' },
  completed_link: { status: 410, tone: 'done' },
  not_configured: { status: 503, tone: 'problem' },
  cancelled: { status: 400, tone: 'stop' },
  unknown_state: { status: 400, tone: 'problem' },
  expired_state: { status: 400, tone: 'wait' },
  spent_state: { status: 409, tone: 'wait' },
  refused_code: { status: 400, tone: 'wait' },
  wrong_company: { status: 409, tone: 'stop' },
  removed_company: { status: 409, tone: 'stop' },
  service_down: { status: 502, tone: 'problem' },
  unusable_grant: { status: 502, tone: 'problem' },
};

export function failurePage({ failure, again }: Failed, company: string | undefined, { text }: Language): ConnectPage {
  const choice = failure === 'wrong_company' ? [chooseText(company, text)] : [];
  return {
    ...FAILURES[failure],
    title: text(`${failure}.title`),
    text: [text(`${failure}.text`), ...choice, ...(again === undefined ? [text(`${failure}.next`)] : [])],
    company,
    needsHelp: true,
    ...(again !== undefined && { action: { label: text('again'), href: consentAddress(again) } }),
  };
}

function chooseText(company: string | undefined, text: Language['text']): string {
  return company === undefined ? text('wrong_company.choose') : text('wrong_company.choose_company', { company });
}

/** Leads from the link straight to the service: the person has seen our page. Without a link, it is that of the page itself. */
export function consentAddress(link: string): string {
  return `${link}?go=1`;
}

interface Connected {
  readonly created: boolean;
  readonly syncing: boolean;
  readonly company: string | undefined;
  /** The address of the operator that follows. */
  readonly onward: ConnectPage['action'];
}

export function connectedPage({ created, syncing, company, onward }: Connected, { text }: Language): ConnectPage {
  const kind = created ? 'connected' : 'connected_again';
  return {
    status: 200,
    tone: 'done',
    title: text(`${kind}.title`),
    text: [text('connected.text'), text(syncing ? `${kind}.started` : 'connected.later')],
    company,
    ...(onward && { action: onward }),
  };
}

/** `unavailable`: the database is away. `failed`: a mistake of ours. */
export function brokenPage(kind: 'unavailable' | 'failed', { text }: Language): ConnectPage {
  return {
    status: kind === 'unavailable' ? 503 : 500,
    tone: 'problem',
    title: text(`${kind}.title`),
    text: [text(`${kind}.text`), text(`${kind}.next`)],
    needsHelp: true,
  };
}
