"""SASL OAUTHBEARER on the broker's side: the exchange, the checks of tokens, and the keys that sign them."""
