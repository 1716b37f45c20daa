import type { PageContent } from '../parts/layout.js';
import { Link } from '../parts/shown-values.js';
import { useView } from '../parts/view.js';
import type { OidcError } from './oidc-client.js';

/** A fault of the issuer, or of the flow itself. */
type Refusal = OidcError['fault'] | 'foreign' | 'late';

interface RefusalText {
  readonly status: number;
  readonly title: string;
  readonly text: (host: string) => string;
}

const REFUSALS: Readonly<Record<Refusal, RefusalText>> = {
  foreign: {
    status: 403,
    title: 'This sign-in did not begin here',
    text: () =>
      'It began in another browser or tab, was already used, or another person sent you here. Start again, and stay in one tab.',
  },
  late: {
    status: 403,
    title: 'Signing in took too long',
    text: (host) => `More than ten minutes have passed since you left for ${host}. Start again.`,
  },
  cancelled: {
    status: 403,
    title: 'Signing in was cancelled',
    text: (host) =>
      `${host} sent you back without signing you in. Start again, or ask its administrator whether you may use Muster.`,
  },
  spent: {
    status: 403,
    title: 'This sign-in was already used',
    text: (host) => `${host} accepts the code of a sign-in once, and only for a short time. Start again.`,
  },
  rejected: {
    status: 502,
    title: 'Muster is not known there',
    text: (host) =>
      `${host} does not accept Muster’s own credentials. An operator of Muster must check OIDC_CLIENT_ID and OIDC_CLIENT_SECRET; until then, sign in with a token.`,
  },
  untrusted: {
    status: 403,
    title: 'The answer cannot be trusted',
    text: (host) =>
      `The answer of ${host} failed a check. Start again. If it happens again, tell an operator of Muster: the log has the reason; differing clocks are a common one.`,
  },
  unreachable: {
    status: 502,
    title: 'Signing in does not work now',
    text: (host) =>
      `${host} does not answer as it should. Try again in a moment, or sign in with a token. An operator of Muster finds the reason with muster doctor.`,
  },
};

/** The page for a failed sign-in. `reason` is a word of the protocol. */
export function refusedPage(
  refusal: Refusal,
  { host, reason }: { readonly host: string; readonly reason?: string },
): PageContent {
  const { status, title, text } = REFUSALS[refusal];
  const body = (
    <>
      <p role="alert">You are not signed in. {text(host)}</p>
      {reason !== undefined && (
        <p class="hint">
          Reason: <code>{reason}</code>
        </p>
      )}
    </>
  );
  return pageWithWaysIn({ title, status, body }, host);
}

function pageWithWaysIn({ title, status, body }: Required<PageContent>, host: string): PageContent {
  const card = (
    <div class="sign-in card">
      <h1>{title}</h1>
      {body}
      <p>
        <OidcLink host={host} />
      </p>
      <p>
        <Link to="/login">Sign in with a token</Link>
      </p>
    </div>
  );
  return { title, status, body: card };
}

interface WithoutRole {
  readonly host: string;
  readonly name: string;
  readonly claim: string;
  readonly values: readonly string[];
}

const MOST_VALUES = 20;

/** The page for a person whom the issuer knows, but who has no role. */
export function noRolePage({ host, name, claim, values }: WithoutRole): PageContent {
  const body = (
    <>
      <p role="alert">
        {host} knows you as <strong>{name}</strong>, but its claims give you no role in Muster. Ask an operator of Muster for a
        role, and show them this page.
      </p>
      <p class="hint">
        The claim <code>{claim}</code>{' '}
        {values.length === 0
          ? 'has no usable value.'
          : 'has these values, none of which is in OIDC_ADMINS, OIDC_OPERATORS or OIDC_VIEWERS:'}
      </p>
      {values.length > 0 && (
        <ul class="hint">
          {values.slice(0, MOST_VALUES).map((value) => (
            <li key={value}>
              <code>{value.slice(0, 100)}</code>
            </li>
          ))}
        </ul>
      )}
    </>
  );
  return pageWithWaysIn({ title: 'You have no role here', status: 403, body }, host);
}

/** The page after signing out if the issuer has no sign-out page. */
export function signOutThereYourselfPage(host: string): PageContent {
  const body = (
    <p>
      You are signed out of Muster. {host} has no sign-out page that Muster could open: sign out there yourself, or close the
      browser.
    </p>
  );
  return pageWithWaysIn({ title: 'Sign out there too', status: 200, body }, host);
}

/**
 * The link that starts a sign-in at the issuer. It is no form, since the pages' policy lets no form lead to another host. It uses PUBLIC_URL,
 * since the issuer sends people back there, and cookies belong to one host.
 */
export function OidcLink({ host, next = '/' }: { readonly host: string; readonly next?: string }) {
  const { publicUrl } = useView();
  const query = next === '/' ? '' : `?next=${encodeURIComponent(next)}`;
  return (
    <a class="button" href={`${publicUrl}/login/oidc${query}`}>
      Sign in with {host}
    </a>
  );
}
