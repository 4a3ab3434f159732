import http from 'k6/http';
export const options = {
  discardResponseBodies: true,
  scenarios: { s: { executor: 'constant-arrival-rate', rate: +__ENV.RATE, timeUnit: '1s', duration: '10s', preAllocatedVUs: 512 } },
  summaryTrendStats: ['p(50)', 'p(99)'],
};
export default () => { http.get('http://127.0.0.1:42080/'); };
