/** What a handler gives back. `members` are JSON texts by name, so that numbers keep every digit. */
export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly members?: Readonly<Record<string, string>>;
  /** Name of the member in which `members` are wrapped. */
  readonly wrap?: string;
}

export function json(status: number, value: Readonly<Record<string, unknown>>, headers: Record<string, string> = {}): Answer {
  const members = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, JSON.stringify(member)]));
  return { status, headers, members };
}

/** An error of the API (the service does not show its form). */
export function refusal(status: number, error: string, message: string, headers: Record<string, string> = {}): Answer {
  return json(status, { error, message }, headers);
}

export function html(status: number, body: string): Answer {
  return {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
      'referrer-policy': 'no-referrer',
    },
    body,
  };
}

export function redirect(location: string): Answer {
  return { status: 303, headers: { location, 'cache-control': 'no-store' }, body: '' };
}

/** The body as it is sent, with some members altered (undefined removes one). */
export function bodyOf(answer: Answer, alter: Readonly<Record<string, unknown>> = {}): string {
  if (!answer.members) return answer.body ?? '';
  const members: Record<string, string | undefined> = { ...answer.members };
  for (const [name, value] of Object.entries(alter)) members[name] = JSON.stringify(value);
  const text = Object.entries(members).flatMap(([name, member]) =>
    member === undefined ? [] : [`${JSON.stringify(name)}:${member}`],
  );
  return answer.wrap === undefined ? `{${text.join(',')}}` : `{${JSON.stringify(answer.wrap)}:{${text.join(',')}}}`;
}
