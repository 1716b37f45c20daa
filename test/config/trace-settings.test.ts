import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/config.js';
import { FaultsError } from '../../src/core/errors.js';
import { redactText } from '../../src/observability/redaction.js';

const ENDPOINT = 'OTEL_EXPORTER_OTLP_ENDPOINT';
const traces = (env: NodeJS.ProcessEnv) => loadConfig(env).traces;

function faultsOf(env: NodeJS.ProcessEnv): string[] {
  try {
    loadConfig(env);
    return [];
  } catch (error) {
    if (!(error instanceof FaultsError)) throw error;
    return error.faults.map(({ where }) => where);
  }
}

describe('traces', () => {
  test.each([
    [{ [ENDPOINT]: 'http://collector:4318' }, 'http://collector:4318/v1/traces'],
    [{ [ENDPOINT]: 'https://collector.example.com/otlp/' }, 'https://collector.example.com/otlp/v1/traces'],
    [{ [ENDPOINT]: 'http://a', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://b/traces' }, 'http://b/traces'],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://b:4318/v1/traces' }, 'http://b:4318/v1/traces'],
    [{ [ENDPOINT]: 'http://a', OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' }, 'http://a/v1/traces'],
  ])('of %j go to %s', (env, url) => {
    expect(traces(env)?.url.href).toBe(url);
  });

  test.each([
    {},
    { [ENDPOINT]: ' ' },
    { [ENDPOINT]: 'http://a', OTEL_SDK_DISABLED: 'TRUE' },
    { [ENDPOINT]: 'http://a', OTEL_TRACES_EXPORTER: 'none' },
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
  ])('of %j go nowhere', (env) => {
    expect(traces(env)).toBeUndefined();
  });

  test('all that is wrong is said at once', () => {
    expect(
      faultsOf({
        [ENDPOINT]: 'collector:4318',
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://user:password@collector',
        OTEL_EXPORTER_OTLP_HEADERS: 'no pair',
        PORT: 'x',
      }).toSorted(),
    ).toEqual([ENDPOINT, 'OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'PORT']);
    expect(faultsOf({ [ENDPOINT]: 'http://a', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })).toEqual(['OTEL_EXPORTER_OTLP_PROTOCOL']);
    expect(faultsOf({ [ENDPOINT]: 'http://a', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' })).toEqual([
      'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL',
    ]);
  });

  test('the headers are secret, encoded and decoded', () => {
    const config = loadConfig({
      [ENDPOINT]: 'http://a',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20canary-header-1f,x-key=canary-key-2f',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-other=canary-other-3f',
    });
    expect(JSON.stringify(config)).not.toContain('canary-header');
    expect(config.traces?.headers?.reveal()).toContain('canary-key-2f');
    for (const text of ['Basic%20canary-header-1f', 'Basic canary-header-1f', 'canary-key-2f', 'canary-other-3f'])
      expect(redactText(`sent ${text} there`)).not.toContain('canary');
  });
});
