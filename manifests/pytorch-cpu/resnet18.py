"""Run resnet18 (random weights) on a random tensor and print the shape and time of the answer."""
import time

import torch
import torchvision


def main():
    torch.manual_seed(0)
    model = torchvision.models.resnet18(weights=None).eval()
    image = torch.rand(1, 3, 224, 224)
    with torch.inference_mode():
        start = time.monotonic()
        answer = model(image)
        elapsed = time.monotonic() - start
    assert torch.isfinite(answer).all()
    shape = "x".join(str(n) for n in answer.shape)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"resnet18: {shape} in {elapsed * 1000:.0f} ms")


if __name__ == "__main__":
    main()
