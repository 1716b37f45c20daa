import type { CompanyKey } from '../../core/company.js';
import type { AuthorizationFailure, Failed } from '../../oauth/authorization.js';
import type { ConnectPage } from './connect-page.js';

type Text = Pick<ConnectPage, 'status' | 'tone' | 'title' | 'text'> & {
  /** Advice if the page cannot offer to start again; unset if there is nothing to do. */
  readonly otherwise?: string;
};

const ASK_AGAIN = 'Ask the person who sent you the link for a new one.';
const OPEN_AGAIN = 'To start again, open the link that you were sent once more. If it no longer works, ask for a new one.';

const FAILURES: Readonly<Record<AuthorizationFailure, Text>> = {
  unknown_link: {
    status: 404,
    tone: 'problem',
    title: 'This link is not known',
    text: ['It may have been cut off when it was copied, or it was withdrawn.'],
    otherwise: `Check that you have all of it. ${ASK_AGAIN}`,
  },
  expired_link: {
    status: 410,
    tone: 'wait',
    title: 'This link has expired',
    text: ['Links are valid for a few days only, so that a forgotten one opens nothing.'],
    otherwise: ASK_AGAIN,
  },
  completed_link: {
    status: 410,
    tone: 'done',
    title: 'This link has been used',
    text: ['The company was connected with it. There is nothing more to do, and you can close this page.'],
    otherwise: `To connect another company, or this one again, you need another link. ${ASK_AGAIN}`,
  },
  not_configured: {
    status: 503,
    tone: 'problem',
    title: 'This cannot be completed right now',
    text: ['Access to the service is not set up properly on our side. Nothing was connected.'],
    otherwise: 'Tell the person who sent you the link. The link stays valid, and you can open it again later.',
  },
  cancelled: {
    status: 400,
    tone: 'stop',
    title: 'Access was not granted',
    text: [
      'The authorization was cancelled, or the service could not complete it. Nothing was connected and nothing was stored.',
    ],
    otherwise: OPEN_AGAIN,
  },
  unknown_state: {
    status: 400,
    tone: 'problem',
    title: 'This answer cannot be accepted',
    text: ['It does not belong to an authorization that was started here. Nothing was connected and nothing was stored.'],
    otherwise: OPEN_AGAIN,
  },
  expired_state: {
    status: 400,
    tone: 'wait',
    title: 'That took too long',
    text: ['An authorization has to be completed within 15 minutes. Nothing was connected and nothing was stored.'],
    otherwise: OPEN_AGAIN,
  },
  spent_state: {
    status: 409,
    tone: 'wait',
    title: 'This step was taken already',
    text: ['The same answer arrived before, or the authorization was started a second time.'],
    otherwise: 'Open the link that you were sent once more: it says whether the company is connected.',
  },
  refused_code: {
    status: 400,
    tone: 'wait',
    title: 'The authorization is no longer valid',
    text: ['The service refused it: it is valid once, for five minutes. Nothing was connected and nothing was stored.'],
    otherwise: OPEN_AGAIN,
  },
  wrong_company: {
    status: 409,
    tone: 'stop',
    title: 'Another company was chosen',
    text: [
      'This link is for one company, but you granted access for another one. Nothing was connected.',
      'Choose the company named here.',
    ],
    otherwise: OPEN_AGAIN,
  },
  removed_company: {
    status: 409,
    tone: 'stop',
    title: 'The company was removed',
    text: ['It was removed here while you granted access. Nothing was connected and nothing was stored.'],
    otherwise: `To connect it again, you need another link. ${ASK_AGAIN}`,
  },
  service_down: {
    status: 502,
    tone: 'problem',
    title: 'The service does not answer',
    text: ['You granted access, but the service could not complete it just now. Nothing was connected.'],
    otherwise: `Wait a few minutes. ${OPEN_AGAIN}`,
  },
  unusable_grant: {
    status: 502,
    tone: 'problem',
    title: 'The service gave an incomplete answer',
    text: ['You granted access, but the service did not send enough to keep the company connected.'],
    otherwise: `If it happens again, tell the person who sent you the link. ${OPEN_AGAIN}`,
  },
};

export function failurePage({ failure, environment, companyId, again }: Failed, name: string | undefined): ConnectPage {
  const { otherwise, ...text } = FAILURES[failure];
  const company = { environment, companyId, name };
  if (again === undefined) return { ...text, company, text: [...text.text, ...(otherwise ? [otherwise] : [])] };
  return { ...text, company, action: { label: 'Start again', href: again } };
}

export function connectedPage(connected: {
  readonly company: CompanyKey;
  readonly created: boolean;
  readonly syncing: boolean;
  readonly name: string | undefined;
}): ConnectPage {
  const { company, created, syncing, name } = connected;
  return {
    status: 200,
    tone: 'done',
    title: created ? 'The company is connected' : 'The company is connected again',
    text: [
      'Access was granted and is stored safely.',
      syncing
        ? `${created ? 'The first sync' : 'A sync'} has started.`
        : 'No sync has started now; the next one is scheduled, unless syncing is paused.',
      'You can close this page.',
    ],
    company: { ...company, name },
  };
}

export const UNAVAILABLE_PAGE: ConnectPage = {
  status: 503,
  tone: 'problem',
  title: 'This cannot be completed right now',
  text: ['Our database does not answer. Wait a few minutes.', OPEN_AGAIN],
};

export const FAILED_PAGE: ConnectPage = {
  status: 500,
  tone: 'problem',
  title: 'Something went wrong here',
  text: ['This should not have happened. The failure is logged.', OPEN_AGAIN],
};
