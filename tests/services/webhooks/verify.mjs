// Prints which deliveries the library accepts: a list of true and false, for the list of cases in standard input.
import { readFileSync } from 'node:fs';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';

const real = Date.now;

function accepts({ secret, headers, body, later_s }) {
  Date.now = () => real() + later_s * 1000;
  try {
    new Webhook(secret).verify(body, headers);
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, 'utf8')).map(accepts)));
