# docker build -t roofcast . && docker run --rm roofcast simulate chat-70b-4xh100
# Own files:    docker run --rm -v "$PWD:/data" roofcast simulate my-scenario.yaml
# The explorer: docker run --rm -p 127.0.0.1:8377:8377 roofcast explore --bind 0.0.0.0
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN ./dev package deb

FROM debian:12-slim
COPY --from=build /source/build/packages/*.deb /packages/
RUN apt-get update && apt-get install -y /packages/*.deb && rm -rf /packages /var/lib/apt/lists/*
USER nobody
WORKDIR /data
ENTRYPOINT ["roofcast"]
CMD ["--help"]
