import type { PageContent } from '../parts/layout.js';
import { useAddress, useView } from '../parts/view.js';
import type { OidcError } from './oidc-client.js';

/** Why nobody was signed in, beside the faults of the issuer. */
type Refusal = OidcError['fault'] | 'foreign' | 'late';

interface Said {
  readonly status: number;
  readonly title: string;
  readonly text: (host: string) => string;
}

const REFUSALS: Readonly<Record<Refusal, Said>> = {
  foreign: {
    status: 403,
    title: 'This sign-in did not begin here',
    text: () =>
      'It was begun in another browser or another tab, has been used already, or somebody else sent you here. Begin anew, and stay in one tab.',
  },
  late: {
    status: 403,
    title: 'Signing in took too long',
    text: (host) => `More than ten minutes have gone by since you left for ${host}. Begin anew.`,
  },
  cancelled: {
    status: 403,
    title: 'Signing in was broken off',
    text: (host) =>
      `${host} sent you back without signing you in. Begin anew, or ask its administrator whether you may use Muster.`,
  },
  spent: {
    status: 403,
    title: 'This sign-in was used already',
    text: (host) => `${host} takes the code of a sign-in once and not for long. Begin anew.`,
  },
  rejected: {
    status: 502,
    title: 'Muster is not known there',
    text: (host) =>
      `${host} does not take Muster’s own credentials. Whoever operates Muster must check OIDC_CLIENT_ID and OIDC_CLIENT_SECRET; until then, sign in with a token.`,
  },
  untrusted: {
    status: 403,
    title: 'The answer cannot be trusted',
    text: (host) =>
      `What ${host} said of you does not hold. Begin anew; if it lasts, tell whoever operates Muster: the log has the reason, and clocks that differ are a usual one.`,
  },
  unreachable: {
    status: 502,
    title: 'Signing in does not work now',
    text: (host) =>
      `${host} does not answer as it should. Try again in a moment, or sign in with a token. Whoever operates Muster finds the reason by muster doctor.`,
  },
};

/** Nobody was signed in, and this is why. `reason` is a word of the protocol. */
export function refusedPage(
  refusal: Refusal,
  { host, reason }: { readonly host: string; readonly reason?: string },
): PageContent {
  const { status, title, text } = REFUSALS[refusal];
  const body = (
    <div class="sign-in card">
      <h1>{title}</h1>
      <p role="alert">Nobody was signed in. {text(host)}</p>
      {reason !== undefined && (
        <p class="hint">
          The reason in one word: <code>{reason}</code>
        </p>
      )}
      <WaysIn host={host} />
    </div>
  );
  return { title, status, body };
}

interface WithoutRole {
  readonly host: string;
  readonly name: string;
  readonly claim: string;
  readonly values: readonly string[];
}

/** As many values as a person reads. */
const MOST_VALUES = 20;

/** Somebody whom the issuer knows, and to whom nobody has given a role. */
export function noRolePage({ host, name, claim, values }: WithoutRole): PageContent {
  const body = (
    <div class="sign-in card">
      <h1>You have no role here</h1>
      <p role="alert">
        {host} knows you as <strong>{name}</strong>, and nothing that it says of you gives you a role in Muster. Ask whoever
        operates Muster for one, and show them this page.
      </p>
      <p class="hint">
        The claim <code>{claim}</code>{' '}
        {values.length === 0
          ? 'has no value that counts.'
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
      <WaysIn host={host} />
    </div>
  );
  return { title: 'You have no role here', status: 403, body };
}

/** The issuer has no page for signing out. */
export function signOutThereYourselfPage(host: string): PageContent {
  const title = 'Sign out there yourself';
  const body = (
    <div class="sign-in card">
      <h1>{title}</h1>
      <p>
        You are signed out of Muster. {host} has no page for signing out that Muster could open: sign out there, or close the
        browser.
      </p>
      <WaysIn host={host} />
    </div>
  );
  return { title, body };
}

/**
 * The link that begins to sign in at the issuer. A link and no form, since the pages' policy lets no form lead to another host; at PUBLIC_URL, since the
 * issuer sends people back there, and a browser keeps what it is given for one host.
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

function WaysIn({ host }: { readonly host: string }) {
  const address = useAddress();
  return (
    <>
      <p>
        <OidcLink host={host} />
      </p>
      <p>
        <a href={address('/login')}>Sign in with a token</a>
      </p>
    </>
  );
}
